//! Tests that take minutes: real crashes, agents that torture the server, load. They share servers and readers with the
//! user stories.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test ends where its own tools fail")]
#![expect(clippy::print_stdout, reason = "what was measured is worth a line")]

#[expect(dead_code, reason = "the user stories use more of it")]
#[path = "../e2e/follower.rs"]
mod follower;
#[path = "../e2e/foreign_follower.rs"]
mod foreign_follower;
#[expect(dead_code, reason = "the user stories use more of it")]
#[path = "../e2e/harness.rs"]
mod harness;
#[path = "../e2e/memory.rs"]
mod memory;

mod client;
mod deaf;
mod footprint;
mod judge;
mod load;
mod real_crashes;
mod soak;
mod torture;

/// Random numbers that are the same in every run.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    pub(crate) fn heads(&mut self) -> bool {
        self.below(2) == 0
    }
}
