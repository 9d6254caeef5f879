//! Twenty readers, with every way of reading, that join, disconnect and resume at random while an agent prints 20,000
//! words.

use serde_json::json;

use tokio::runtime::Handle;

use crate::follower::{Follower, Place, Way};
use crate::harness::{TestServer, numbers, text_of};

const DELTAS: u64 = 20_000;
const FOLLOWERS: u64 = 20;

/// A small random generator: the same seed creates the same readers.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_readers_that_cut_and_resume_at_random_see_the_same() {
    let server = TestServer::start();
    let id = server.launch(&json!({ "mode": "stream", "deltas": DELTAS, "pace_us": 50 })).await;
    let readers = (0..FOLLOWERS).map(|seed| {
        let (place, id) = (Place::of(&server), id.clone());
        Handle::current().spawn(async move {
            let mut chance = Chance(seed);
            let mut follower = Follower::new(place, &id);
            while follower.results() == 0 {
                let way = [Way::Rest, Way::Sse, Way::WebSocket, Way::SocketIo][chance.below(4) as usize];
                // How much is read before the connection is cut: sometimes a word, sometimes thousands.
                let scale = 1 << chance.below(14);
                let most = 1 + chance.below(scale);
                assert!(follower.read(way, most as usize).await, "the server is there all the time");
            }
            follower
        })
    });
    let readers: Vec<_> = readers.collect();
    let mut all = Vec::new();
    for reader in readers {
        all.push(reader.await.unwrap());
    }
    let expected = numbers(DELTAS);
    assert_eq!(text_of(&all[0].events()), expected);
    assert!(all.iter().all(|follower| follower.bytes() == all[0].bytes()), "the same bytes for everybody");
    assert_eq!(all[0].events(), server.events(&id).await);
}
