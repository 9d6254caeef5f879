//! The runners against real processes and real connections, all in one binary: it links once.

#[cfg(test)]
mod process;
#[cfg(test)]
mod proxy;
