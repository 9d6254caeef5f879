//! The requests of one connection that are being answered.

use std::collections::HashMap;

use futures_util::FutureExt;
use futures_util::future::{AbortHandle, Abortable, BoxFuture};
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokenrail_domain::{AgentId, TurnNumber};

use crate::vocabularies::ai_sdk::stream::{ChatNext, ChatStream};

/// The turn that answers a request.
pub(super) type TurnId = (AgentId, TurnNumber);

/// The requests that are being answered.
#[derive(Default)]
pub(super) struct Requests {
    known: HashMap<String, (TurnId, AbortHandle)>,
    waiting: FuturesUnordered<Abortable<BoxFuture<'static, Waited>>>,
}

/// What came of waiting for more of an answer.
pub(super) struct Waited {
    pub(super) request: String,
    pub(super) turn: TurnId,
    pub(super) stream: ChatStream,
    pub(super) next: ChatNext,
}

impl Requests {
    /// Waits for more of an answer.
    pub(super) fn wait(&mut self, request: String, turn: TurnId, mut stream: ChatStream) {
        let (abort, registration) = AbortHandle::new_pair();
        self.known.insert(request.clone(), (turn, abort));
        let waited = async move {
            let next = stream.next().await;
            Waited { request, turn, stream, next }
        };
        self.waiting.push(Abortable::new(waited.boxed(), registration));
    }

    /// Waits until one of the answers goes on; for ever where there is none. May be dropped at any await.
    pub(super) async fn next(&mut self) -> Waited {
        loop {
            match self.waiting.next().await {
                Some(Ok(waited)) => return waited,
                // The client has lost interest.
                Some(Err(_)) => {}
                None => std::future::pending().await,
            }
        }
    }

    pub(super) fn contains(&self, request: &str) -> bool {
        self.known.contains_key(request)
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// Waits for no more of an answer; gives the turn that was to say it.
    pub(super) fn remove(&mut self, request: &str) -> Option<TurnId> {
        let (turn, abort) = self.known.remove(request)?;
        abort.abort();
        Some(turn)
    }
}
