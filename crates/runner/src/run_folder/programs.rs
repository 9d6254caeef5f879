//! The programs that work for a run: their names, and the sources that they are built from.

/// The version, and a hash of the sources that this program is built from.
pub(crate) const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("TOKENRAIL_SOURCES"));
/// The name of the program that can only supervise.
pub(crate) const SUPERVISOR: &str = "tokenrail-supervisor";
/// The command of that program, and of the server's, that supervises a run.
pub(crate) const SUPERVISE: &str = "supervise";
/// The exit code of the small program if it belongs to another server: `EX_USAGE` of sysexits.h.
pub(crate) const REFUSED: u8 = 64;

/// This very program, even if an upgrade has put another one in its place.
pub(crate) const THIS_PROGRAM: &str = "/proc/self/exe";
