//! How often something may happen.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// A token bucket: holds as many tokens as come in a minute, and is full at first.
pub(crate) struct TokenBucket {
    per_minute: f64,
    state: Mutex<Bucket>,
}

#[derive(Clone, Copy)]
struct Bucket {
    tokens: f64,
    at: Instant,
}

impl Bucket {
    fn full(per_minute: f64, now: Instant) -> Self {
        Self { tokens: per_minute, at: now }
    }

    fn refill(&mut self, per_minute: f64, now: Instant) {
        let came = (now - self.at).as_secs_f64() * per_minute / 60.0;
        *self = Self { tokens: (self.tokens + came).min(per_minute), at: now };
    }

    fn take(&mut self, per_minute: f64, now: Instant) -> Result<(), Duration> {
        self.refill(per_minute, now);
        if 1.0 <= self.tokens {
            self.tokens -= 1.0;
            return Ok(());
        }
        Err(Duration::from_secs_f64((1.0 - self.tokens) * 60.0 / per_minute))
    }
}

impl TokenBucket {
    pub(crate) fn new(per_minute: u32) -> Self {
        let per_minute = f64::from(per_minute.max(1));
        Self { per_minute, state: Mutex::new(Bucket::full(per_minute, Instant::now())) }
    }

    /// Takes a token.
    ///
    /// # Errors
    /// How long it takes until there is one.
    pub(crate) fn take(&self) -> Result<(), Duration> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.take(self.per_minute, Instant::now())
    }
}

/// A token bucket for each peer.
pub(crate) struct PeerBuckets {
    per_minute: f64,
    /// Peers that are remembered.
    max: usize,
    peers: Mutex<HashMap<IpAddr, Bucket>>,
}

impl PeerBuckets {
    pub(crate) fn new(per_minute: u32, max: usize) -> Self {
        Self { per_minute: f64::from(per_minute.max(1)), max: max.max(1), peers: Mutex::default() }
    }

    /// Takes a token of this peer.
    ///
    /// # Errors
    /// How long it takes until there is one.
    pub(crate) fn take(&self, peer: IpAddr) -> Result<(), Duration> {
        let now = Instant::now();
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if !peers.contains_key(&peer) && self.max <= peers.len() {
            self.make_room(&mut peers, now);
        }
        peers.entry(peer).or_insert(Bucket::full(self.per_minute, now)).take(self.per_minute, now)
    }

    /// Forgets whoever has a full bucket again, and where that is nobody, whoever has come least lately.
    fn make_room(&self, peers: &mut HashMap<IpAddr, Bucket>, now: Instant) {
        peers.retain(|_, bucket| {
            let mut later = *bucket;
            later.refill(self.per_minute, now);
            later.tokens < self.per_minute
        });
        if self.max <= peers.len() {
            let oldest = peers.iter().min_by_key(|(_, bucket)| bucket.at).map(|(peer, _)| *peer);
            oldest.map(|peer| peers.remove(&peer));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_full_bucket_gives_its_tokens_at_once_and_then_one_by_one() {
        let bucket = TokenBucket::new(60);
        for _ in 0..60 {
            assert_eq!(bucket.take(), Ok(()));
        }
        assert_eq!(bucket.take(), Err(Duration::from_secs(1)));
        tokio::time::advance(Duration::from_millis(1001)).await;
        assert_eq!(bucket.take(), Ok(()));
        assert!(bucket.take().is_err());
        tokio::time::advance(Duration::from_hours(1)).await;
        assert_eq!(
            (0..100).filter(|_| bucket.take().is_ok()).count(),
            60,
            "it never holds more than a minute's"
        );
    }

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
