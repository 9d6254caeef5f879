//! What a session tells about agents: the events of those that its client follows, and the lifecycle events of all.

use std::future::pending;
use std::sync::Arc;

use tokenrail_application::{
    KeptLifecycleEvent, LifecycleEventsMissed, LifecycleReader, RenderingKey, StoreError, StreamEnd,
};
use tokenrail_domain::{AgentId, Timestamp};

use super::Session;
use crate::error::{Code, Problem};
use crate::json::IsoTime;
use crate::vocabularies::native::PageFrames;
use crate::vocabularies::native::dto::frames::{AgentDeleted, Unsubscribed};
use crate::vocabularies::native::transport::Packets;
use crate::vocabularies::native::ws::envelope::tell_lifecycle;
use crate::vocabularies::native::ws::subscriptions::Update;
use crate::websocket::close_code;

impl Session {
    pub(super) fn handle_update(&mut self, update: Update) {
        match update {
            Update::Page(PageFrames::Frames(frames)) => {
                self.heart.gives_events(true);
                self.frames(frames);
            }
            // Socket.IO has no dialect with pieces. A shutdown closes the connection, which tells the client.
            Update::Page(PageFrames::Pieces(_)) | Update::End { end: StreamEnd::ShuttingDown, .. } => {}
            Update::End { agent, end: StreamEnd::AgentEnded | StreamEnd::AgentDeleted, deleted } => {
                self.emit("unsubscribed", &Unsubscribed { agent_id: agent.into() });
                self.deleted(agent, deleted);
            }
            Update::Broken { agent, error, deleted } => {
                // To reconnect would not help, and would disturb the other agents again and again.
                let is_lasting = matches!(error, StoreError::Corrupt(_) | StoreError::UnknownAgent(_));
                self.problem(&error.into(), Some(agent));
                self.deleted(agent, deleted);
                if !is_lasting {
                    self.reconnects();
                }
            }
        }
    }

    /// Ends the connection if the store can be read again soon.
    pub(super) fn reconnects_after(&mut self, problem: &Problem) {
        if problem.code == Code::StoreBusy {
            self.reconnects();
        }
    }

    /// Ends the connection. The client is no longer in the room of the agent, and its library repeats nothing that it
    /// has emitted: only after a lost connection, it comes back with its numbers.
    fn reconnects(&mut self) {
        self.close(close_code::STORE_BUSY, "the history could not be read");
    }

    /// If an agent is deleted while it is followed, `agent:deleted` is the last event about it.
    pub(super) fn deleted(&mut self, agent: AgentId, at: Option<Timestamp>) {
        if let Some(at) = at {
            self.emit("agent:deleted", &AgentDeleted { agent_id: agent.into(), timestamp: IsoTime(at) });
        }
    }

    pub(super) fn lifecycle(
        &mut self,
        event: Option<Result<Arc<KeptLifecycleEvent>, LifecycleEventsMissed>>,
    ) {
        match event {
            Some(Ok(item)) => {
                if !self.subscriptions.tells_later(&item.event) {
                    let packet = item.rendering(RenderingKey::of::<Packets>([0, 0]), |event| {
                        let mut out = Packets::default();
                        tell_lifecycle(self.api.service(), event, &mut out);
                        out.into_bytes()
                    });
                    self.frames(packet);
                }
            }
            Some(Err(LifecycleEventsMissed)) => {
                let detail = "lifecycle events were missed: reload the list of agents";
                self.problem(&Problem::new(Code::NewsLagged, detail), None);
            }
            // The lifecycle events end only when the service closes.
            None => self.close(close_code::SHUTTING_DOWN, "shutting down"),
        }
    }
}

/// Waits for the next lifecycle event. Forever without a reader.
pub(super) async fn next_lifecycle_event(
    lifecycle: &mut Option<LifecycleReader>,
) -> Option<Result<Arc<KeptLifecycleEvent>, LifecycleEventsMissed>> {
    match lifecycle {
        Some(lifecycle) => lifecycle.next().await,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokenrail_ports::testing::samples;
    use tokio::sync::mpsc;

    use super::*;
    use crate::tests::harness::Harness;
    use crate::vocabularies::native::socket_io::incoming::Incoming;
    use crate::vocabularies::native::socket_io::session::{Place, SessionOutput};

    /// A client that stays connected would believe that the agent says nothing. If the error lasts, the client gets the
    /// error, and stays connected for its other agents.
    #[actix_web::test]
    async fn an_error_of_the_store_ends_the_connection_unless_it_lasts() {
        let harness = Harness::new();
        let agent = samples::launch(1).0.id;
        for (error, ends) in [
            (StoreError::Busy, true),
            (StoreError::Unavailable("a disk".into()), true),
            (StoreError::Fenced, true),
            (StoreError::Corrupt("a page".into()), false),
            (StoreError::UnknownAgent(agent), false),
        ] {
            let peer = Ipv4Addr::LOCALHOST.into();
            let place = Place::take(&harness.api, peer, true).unwrap();
            let incoming = Incoming::bodies(mpsc::channel(1).1);
            let mut session = Session::new(&harness.api, peer, place, incoming);
            session.handle_update(Update::Broken { agent, error, deleted: None });
            assert!(matches!(session.next().await, Some(SessionOutput::Frames(_))), "the client learns why");
            assert_eq!(session.closed, ends);
            if !ends {
                continue;
            }
            let end = session.next().await;
            assert!(matches!(end, Some(SessionOutput::Close(close_code::STORE_BUSY, _))), "{end:?}");
            assert!(session.next().await.is_none());
        }
    }
}
