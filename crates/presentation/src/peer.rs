//! The peer that a request comes from, and the places that each peer takes.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

/// Places for streams, or for other connections of clients: so many in all, and so many for each peer. All clients on
/// this machine, such as a reverse proxy, share the loopback address, so it has no limit of its own.
#[derive(Clone)]
pub(crate) struct Places {
    max: usize,
    max_of_peer: usize,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Default)]
struct Taken {
    all: usize,
    by_peer: HashMap<IpAddr, usize>,
}

/// A place of a peer. Dropping it frees the place.
pub(crate) struct StreamPlace {
    peer: IpAddr,
    places: Places,
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoPlace {
    /// All places are taken.
    AtAll,
    /// The peer has as many as it may have.
    ForPeer,
}

impl Places {
    pub(crate) fn new(max: usize, max_of_peer: usize) -> Self {
        Self { max, max_of_peer, taken: Arc::default() }
    }

    /// Takes a place.
    ///
    /// # Errors
    /// [`NoPlace`] if no place is free.
    pub(crate) fn take(&self, peer: IpAddr) -> Result<StreamPlace, NoPlace> {
        let mut taken = self.taken();
        let of_peer = taken.by_peer.get(&peer).copied().unwrap_or_default();
        if self.max <= taken.all {
            return Err(NoPlace::AtAll);
        }
        if self.max_of_peer <= of_peer && !peer.is_loopback() {
            return Err(NoPlace::ForPeer);
        }
        taken.all += 1;
        taken.by_peer.insert(peer, of_peer + 1);
        Ok(StreamPlace { peer, places: self.clone() })
    }

    /// The number of places that are taken.
    pub(crate) fn count_taken(&self) -> usize {
        self.taken().all
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        taken.all -= 1;
        match taken.by_peer.get_mut(&self.peer) {
            Some(count) if 1 < *count => *count -= 1,
            _ => drop(taken.by_peer.remove(&self.peer)),
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
    fn places_are_taken_until_they_are_dropped() {
        let places = Places::new(usize::MAX, 2);
        let (one, two) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        let (first, second) = (places.take(one).unwrap(), places.take(one).unwrap());
        assert_eq!(places.take(one).err(), Some(NoPlace::ForPeer));
        let other = places.take(two).unwrap();
        assert_eq!(places.count_taken(), 3, "another peer is not concerned");
        drop(first);
        let third = places.take(one).unwrap();
        drop((second, third, other));
        assert_eq!(places.count_taken(), 0);
        assert!(places.taken().by_peer.is_empty(), "who has gone is forgotten");
        let here = IpAddr::from([127, 0, 0, 1]);
        let many: Vec<_> = (0..10).map(|_| places.take(here)).collect();
        assert!(many.iter().all(Result::is_ok), "this machine has no limit of its own");
    }

    #[test]
    fn neither_one_peer_nor_all_of_them_take_more_than_their_places() {
        const PLACES: usize = 256;
        const PLACES_OF_PEER: usize = 16;
        let places = Places::new(PLACES, PLACES_OF_PEER);
        let peer = |number: u8| IpAddr::from([192, 0, 2, number]);
        let mut taken = Vec::new();
        for number in 0..=u8::MAX {
            while let Ok(place) = places.take(peer(number)) {
                taken.push(place);
            }
            let of_this = (taken.len() - PLACES_OF_PEER * usize::from(number)).min(PLACES_OF_PEER);
            assert_eq!(of_this, PLACES_OF_PEER, "{number}");
            if taken.len() == PLACES {
                break;
            }
        }
        let here = IpAddr::from([127, 0, 0, 1]);
        assert_eq!(places.take(here).err(), Some(NoPlace::AtAll), "not even this machine");
        taken.pop();
        assert!(places.take(peer(255)).is_ok());
    }
}
