//! Limits how often each client address may do something. The limits themselves are in `config.rs`.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokenrail_application::TokenBucket;

/// A token bucket for each peer.
pub(crate) struct PeerBuckets {
    per_minute: u32,
    /// Maximum number of peers that are remembered.
    max: usize,
    peers: Mutex<HashMap<IpAddr, TokenBucket>>,
}

impl PeerBuckets {
    pub(crate) fn new(per_minute: u32, max: usize) -> Self {
        Self { per_minute, max: max.max(1), peers: Mutex::default() }
    }

    /// Takes a token from the bucket of this peer.
    ///
    /// # Errors
    /// The time until the next token.
    pub(crate) fn take(&self, peer: IpAddr) -> Result<(), Duration> {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if !peers.contains_key(&peer) && self.max <= peers.len() {
            self.make_room(&mut peers);
        }
        peers.entry(peer).or_insert_with(|| TokenBucket::full(self.per_minute)).take()
    }

    /// Forgets peers whose bucket is full again. If there is none, forgets the one that asked least recently.
    fn make_room(&self, peers: &mut HashMap<IpAddr, TokenBucket>) {
        peers.retain(|_, bucket| !bucket.is_full());
        if self.max <= peers.len() {
            let oldest = peers.iter().min_by_key(|(_, bucket)| bucket.last_asked()).map(|(peer, _)| *peer);
            oldest.map(|peer| peers.remove(&peer));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_peer_has_its_own_bucket_and_only_so_many_are_remembered() {
        let peer = |last: u8| IpAddr::from([192, 0, 2, last]);
        let peers = PeerBuckets::new(1, 2);
        assert_eq!(peers.take(peer(1)), Ok(()));
        assert_eq!(peers.take(peer(1)), Err(Duration::from_mins(1)));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(peers.take(peer(2)), Ok(()), "another one is not concerned");
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(peers.take(peer(3)), Ok(()));
        assert_eq!(peers.peers.lock().unwrap().len(), 2);
        assert!(peers.take(peer(2)).is_err(), "the oldest was forgotten, not this one");
        tokio::time::advance(Duration::from_mins(2)).await;
        assert_eq!(peers.take(peer(1)), Ok(()));
        assert_eq!(peers.peers.lock().unwrap().len(), 1, "who has waited long enough is forgotten");
    }
}
