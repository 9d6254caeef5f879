//! The runners with real processes and real connections, all in one binary, so that linking happens once.

#[cfg(test)]
mod process;
#[cfg(test)]
mod proxy;
