//! The address of the server of a data folder, for the commands that connect to it.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

fn address_file(data_dir: &Path) -> PathBuf {
    data_dir.join("address")
}

/// Writes the address to the data folder.
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn write(data_dir: &Path, address: SocketAddr) -> io::Result<()> {
    let file = address_file(data_dir);
    let new = file.with_extension("new");
    std::fs::write(&new, format!("{address}\n"))?;
    std::fs::rename(new, file)
}

/// Reads the address that a server has written. That server may have died since.
pub(crate) fn read(data_dir: &Path) -> Option<SocketAddr> {
    std::fs::read_to_string(address_file(data_dir)).ok()?.trim().parse().ok()
}

/// Removes the address.
pub(crate) fn remove(data_dir: &Path) {
    // The file may be gone already. A stale file only costs its reader one failed connection.
    let _ = std::fs::remove_file(address_file(data_dir));
}
