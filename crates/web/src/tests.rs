mod built;
mod served;
