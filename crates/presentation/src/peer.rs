//! The peer that a request comes from, and the number of streams that each peer has open.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

/// The peer to which limits apply. An IPv6 /64 counts as one peer, because providers assign all of it to one customer.
pub(crate) fn peer(address: Option<SocketAddr>) -> IpAddr {
    match address.map(|address| address.ip().to_canonical()) {
        None => Ipv4Addr::UNSPECIFIED.into(),
        Some(IpAddr::V6(ip)) if !ip.is_loopback() => {
            Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX)).into()
        }
        Some(ip) => ip,
    }
}

/// The number of streams that each peer has open. All clients on this machine, such as a reverse proxy, share the
/// loopback address, so it has no limit of its own.
#[derive(Clone)]
pub(crate) struct PeerStreams {
    max: usize,
    open: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

/// Counts as one open stream of a peer until it is dropped.
pub(crate) struct PeerStream {
    peer: IpAddr,
    all: PeerStreams,
}

impl PeerStreams {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, open: Arc::default() }
    }

    /// Counts a stream. `None` if the peer already has the maximum.
    pub(crate) fn open(&self, peer: IpAddr) -> Option<PeerStream> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.entry(peer).or_default();
        if self.max <= *count && !peer.is_loopback() {
            if *count == 0 {
                open.remove(&peer);
            }
            return None;
        }
        *count += 1;
        Some(PeerStream { peer, all: self.clone() })
    }
}

impl Drop for PeerStream {
    fn drop(&mut self) {
        let mut open = self.all.open.lock().unwrap_or_else(PoisonError::into_inner);
        match open.get_mut(&self.peer) {
            Some(count) if 1 < *count => *count -= 1,
            _ => drop(open.remove(&self.peer)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_an_address_or_a_network_of_ipv6() {
        let of = |text: &str| peer(Some(text.parse().unwrap())).to_string();
        assert_eq!(of("192.0.2.7:1"), "192.0.2.7");
        assert_eq!(of("[::ffff:192.0.2.7]:1"), "192.0.2.7");
        assert_eq!(of("[2001:db8:0:1:2:3:4:5]:1"), "2001:db8:0:1::");
        assert_eq!(of("[::1]:1"), "::1");
    }

    #[test]
    fn streams_are_counted_until_they_end() {
        let streams = PeerStreams::new(2);
        let (one, two) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        let (first, second) = (streams.open(one).unwrap(), streams.open(one).unwrap());
        assert!(streams.open(one).is_none());
        let other = streams.open(two);
        assert!(other.is_some(), "another peer is not concerned");
        drop(first);
        let third = streams.open(one).unwrap();
        drop((second, third, other));
        assert!(streams.open.lock().unwrap().is_empty(), "who has gone is forgotten");
        let here = IpAddr::from([127, 0, 0, 1]);
        let many: Vec<_> = (0..10).map(|_| streams.open(here)).collect();
        assert!(many.iter().all(Option::is_some), "this machine has no limit of its own");
    }
}
