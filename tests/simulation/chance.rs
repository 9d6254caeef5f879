//! The clock and the random numbers of a simulated server.

use tokenrail_domain::Timestamp;
use tokenrail_ports::{IClock, IRandom};

use crate::world::{EPOCH_MS, World};

impl IClock for World {
    fn now(&self) -> Timestamp {
        let state = self.lock();
        Timestamp(EPOCH_MS + state.now_ms() as i64 + state.jump_ms)
    }
}

impl IRandom for World {
    fn bytes(&self) -> [u8; 10] {
        let mut bytes = [0; 10];
        bytes[2..].copy_from_slice(&self.lock().dice.next().to_be_bytes());
        bytes
    }
}
