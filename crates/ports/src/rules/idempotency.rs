//! The answer to a client that repeats a command with its idempotency key.

use crate::{Created, Enqueued, Recalled};

impl Recalled {
    /// The answer to a launch.
    pub fn created(self) -> Created {
        if self.same_body { Created::Again(self.agent) } else { Created::KeyReused }
    }

    /// The answer to a message.
    pub fn enqueued(self) -> Enqueued {
        let Self { same_body, turn, queued, agent: _ } = self;
        if same_body { Enqueued::Again { turn, queued } } else { Enqueued::KeyReused }
    }
}
