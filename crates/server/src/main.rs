//! The `tokenrail` program.
fn main() {}
