//! Places for clients that have not shown a token yet. Socket.IO clients open their connection first, and send the
//! token in their first packet. They are counted apart, so that clients without a token cannot take the places of
//! those with one.

use std::net::IpAddr;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::{Code, Problem};
use crate::peer::{PeerStream, PeerStreams};

/// The places for clients that have not shown a token yet.
pub(crate) struct Lobby {
    places: Arc<Semaphore>,
    peers: PeerStreams,
}

/// A place in the lobby. Dropping it frees the place.
pub(crate) struct LobbyPlace {
    _permit: OwnedSemaphorePermit,
    _of_peer: PeerStream,
}

impl Lobby {
    /// A lobby for at most `places` clients, of which one peer may have `of_peer`. The loopback address has no limit of
    /// its own.
    pub(crate) fn new(places: usize, of_peer: usize) -> Self {
        let places = places.min(Semaphore::MAX_PERMITS);
        Self { places: Arc::new(Semaphore::new(places)), peers: PeerStreams::new(of_peer) }
    }

    /// Takes a place.
    ///
    /// # Errors
    /// [`Problem`] if no place is free.
    pub(crate) fn enter(&self, peer: IpAddr) -> Result<LobbyPlace, Problem> {
        let full = || {
            let detail = "too many connected clients have not sent a token yet; try again later, or send the token \
                          in the header Authorization";
            Problem::new(Code::CapacityExhausted, detail)
        };
        let permit = Arc::clone(&self.places).try_acquire_owned().map_err(|_| full())?;
        let of_peer = self.peers.open(peer).ok_or_else(full)?;
        Ok(LobbyPlace { _permit: permit, _of_peer: of_peer })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_one_peer_nor_all_of_them_take_more_than_their_places() {
        const PLACES: usize = 256;
        const PLACES_OF_PEER: usize = 16;
        let lobby = Lobby::new(PLACES, PLACES_OF_PEER);
        let peer = |number: u8| IpAddr::from([192, 0, 2, number]);
        let mut places = Vec::new();
        for number in 0..=u8::MAX {
            while let Ok(place) = lobby.enter(peer(number)) {
                places.push(place);
            }
            let of_this = (places.len() - PLACES_OF_PEER * usize::from(number)).min(PLACES_OF_PEER);
            assert_eq!(of_this, PLACES_OF_PEER, "{number}");
            if places.len() == PLACES {
                break;
            }
        }
        assert!(lobby.enter(IpAddr::from([127, 0, 0, 1])).is_err(), "not even this machine");
        places.pop();
        assert!(lobby.enter(peer(255)).is_ok());
    }
}
