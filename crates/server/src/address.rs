//! The address of the server of a data folder, for the commands that connect to it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
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

/// The address at which a client of this machine reaches a server that listens on `address`. A server that listens on
/// all addresses is reached on the loopback address: it refuses requests for the host `0.0.0.0`.
pub(crate) fn reachable(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address
}

/// How clients reach an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

impl Scheme {
    /// The port that clients omit in `Host`.
    fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// The values of `Host` with which clients name a server that listens on `address`. For all addresses, those of this
/// machine.
pub(crate) fn hosts(address: SocketAddr, scheme: Scheme) -> Vec<String> {
    let port = address.port();
    let mut names = vec!["127.0.0.1".to_owned(), "localhost".to_owned(), "[::1]".to_owned()];
    if !address.ip().is_unspecified() {
        names.push(host(address.ip()));
    }
    if port == scheme.default_port() {
        let with_port: Vec<_> = names.iter().map(|name| format!("{name}:{port}")).collect();
        return names.into_iter().chain(with_port).collect();
    }
    names.into_iter().map(|name| format!("{name}:{port}")).collect()
}

/// An IP address as it is in a URL.
fn host(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_on_all_addresses_is_reached_on_the_loopback_address() {
        for (listens, reached) in [
            ("0.0.0.0:7117", "127.0.0.1:7117"),
            ("[::]:7117", "[::1]:7117"),
            ("127.0.0.1:1", "127.0.0.1:1"),
            ("192.0.2.1:80", "192.0.2.1:80"),
        ] {
            assert_eq!(reachable(listens.parse().unwrap()).to_string(), reached);
        }
    }

    #[test]
    fn a_client_that_omits_the_default_port_of_the_scheme_is_accepted() {
        let accepts = |address: &str, scheme, host: &str| {
            hosts(address.parse().unwrap(), scheme).iter().any(|known| known == host)
        };
        for (address, scheme, host) in [
            ("192.0.2.1:443", Scheme::Https, "192.0.2.1"),
            ("192.0.2.1:443", Scheme::Https, "192.0.2.1:443"),
            ("[2001:db8::1]:443", Scheme::Https, "[2001:db8::1]"),
            ("0.0.0.0:443", Scheme::Https, "localhost"),
            ("192.0.2.1:80", Scheme::Http, "192.0.2.1"),
            ("127.0.0.2:80", Scheme::Http, "127.0.0.2"),
            ("192.0.2.1:7117", Scheme::Https, "192.0.2.1:7117"),
            ("192.0.2.1:7117", Scheme::Https, "127.0.0.1:7117"),
        ] {
            assert!(accepts(address, scheme, host), "{address} {host}");
        }
        for (address, scheme, host) in [
            ("192.0.2.1:80", Scheme::Https, "192.0.2.1"),
            ("192.0.2.1:443", Scheme::Http, "192.0.2.1"),
            ("192.0.2.1:7117", Scheme::Https, "192.0.2.1"),
            ("0.0.0.0:443", Scheme::Https, "0.0.0.0"),
            ("0.0.0.0:443", Scheme::Https, "192.0.2.1"),
        ] {
            assert!(!accepts(address, scheme, host), "{address} {host}");
        }
    }
}
