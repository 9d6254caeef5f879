//! The page: its built files are in the binary, so that a server is one file and shows the page it was built with.
//!
//! The sources are in `page/` and `client/` beside this folder; `cargo xtask web` builds `page/dist/` from them, and a
//! test here fails when it was forgotten.

mod serve;
#[cfg(test)]
mod tests;

pub use serve::{BasePath, PATHS, missing, open_paths, serve};
