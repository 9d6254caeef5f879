//! Where the server of a data folder listens, for the commands that look for it.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

fn address_file(data_dir: &Path) -> PathBuf {
    data_dir.join("address")
}

/// Leaves the address for other commands.
///
/// # Errors
/// Where the file cannot be written.
pub(crate) fn write(data_dir: &Path, address: SocketAddr) -> io::Result<()> {
    let file = address_file(data_dir);
    let new = file.with_extension("new");
    std::fs::write(&new, format!("{address}\n"))?;
    std::fs::rename(new, file)
}

/// The address that a server has left; it may have died since.
pub(crate) fn read(data_dir: &Path) -> Option<SocketAddr> {
    std::fs::read_to_string(address_file(data_dir)).ok()?.trim().parse().ok()
}

/// Takes the address back.
pub(crate) fn remove(data_dir: &Path) {
    // Gone is gone; a stale file only costs its reader one failed connection.
    let _ = std::fs::remove_file(address_file(data_dir));
}
