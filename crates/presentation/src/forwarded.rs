//! Connections that another part of this process passes on, such as the one that decrypts TLS.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The clients of connections that are passed on, by the address that the connection comes from.
#[derive(Debug, Clone, Default)]
pub struct Forwarded(Arc<Mutex<HashMap<SocketAddr, SocketAddr>>>);

/// Forgets the client of a connection when it is dropped.
#[derive(Debug)]
pub struct Announced {
    from: SocketAddr,
    all: Forwarded,
}

impl Forwarded {
    /// Says that a connection from the address `from` is one of `client`.
    #[must_use]
    pub fn announce(&self, from: SocketAddr, client: SocketAddr) -> Announced {
        self.clients().insert(from, client);
        Announced { from, all: self.clone() }
    }

    /// The client of a connection: `from` itself, if nobody passes it on.
    pub(crate) fn client(&self, from: SocketAddr) -> SocketAddr {
        self.clients().get(&from).copied().unwrap_or(from)
    }

    fn clients(&self) -> MutexGuard<'_, HashMap<SocketAddr, SocketAddr>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        self.all.clients().remove(&self.from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_known_as_long_as_its_connection() {
        let (from, client) = ("127.0.0.1:4000".parse().unwrap(), "192.0.2.7:5000".parse().unwrap());
        let forwarded = Forwarded::default();
        let announced = forwarded.announce(from, client);
        assert_eq!(forwarded.client(from), client);
        drop(announced);
        assert_eq!(forwarded.client(from), from);
    }
}
