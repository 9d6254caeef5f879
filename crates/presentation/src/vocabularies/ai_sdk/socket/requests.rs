//! The open requests of one connection.

use std::collections::HashMap;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::{AbortHandle, Abortable, BoxFuture};
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokenrail_domain::TurnId;

use crate::vocabularies::ai_sdk::stream::ChatStream;

/// The open requests of one connection.
#[derive(Default)]
pub(super) struct Requests {
    known: HashMap<String, (TurnId, AbortHandle)>,
    waiting: FuturesUnordered<Abortable<BoxFuture<'static, Waited>>>,
}

/// The result of waiting for more of a response.
pub(super) struct Waited {
    pub(super) request: String,
    /// The turn that answers the request.
    pub(super) turn: TurnId,
    pub(super) stream: ChatStream,
    /// As [`ChatStream::next`] returns it.
    pub(super) next: Result<Option<Bytes>, &'static str>,
}

impl Requests {
    /// Starts to wait for more of a response.
    pub(super) fn wait(&mut self, request: String, turn: TurnId, mut stream: ChatStream) {
        let (abort, registration) = AbortHandle::new_pair();
        self.known.insert(request.clone(), (turn, abort));
        let waited = async move {
            let next = stream.next().await;
            Waited { request, turn, stream, next }
        };
        self.waiting.push(Abortable::new(waited.boxed(), registration));
    }

    /// Waits until there is more of one of the responses. Waits forever if no request is open. May be dropped at any
    /// await.
    pub(super) async fn next(&mut self) -> Waited {
        loop {
            match self.waiting.next().await {
                Some(Ok(waited)) => return waited,
                // `remove` has aborted this request.
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

    /// Stops waiting for more of a response. Returns its turn.
    pub(super) fn remove(&mut self, request: &str) -> Option<TurnId> {
        let (turn, abort) = self.known.remove(request)?;
        abort.abort();
        Some(turn)
    }
}
