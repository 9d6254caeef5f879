//! The events that a client emits: `subscribe` and `unsubscribe`.

use tokenrail_domain::{AgentId, Sequence};

use super::{Session, error_frame, tagged};
use crate::error::{Code, Problem};
use crate::vocabularies::native::dto::client::{Mistake, subscribe, unsubscribe};
use crate::vocabularies::native::dto::frames::{Subscribed, Unsubscribed};
use crate::vocabularies::native::dto::socket_io::AckDto;
use crate::vocabularies::native::socket_io::packet::ACK;
use crate::vocabularies::native::ws::follow::follow_to_deletion;
use crate::vocabularies::native::{Detail, Dialect, DialectFold, Teller, TextMode};

const NO_EVENT: &str = "must be subscribe or unsubscribe; to send a message to an agent, use POST \
                        /api/agents/{agentId}/messages";

impl Session {
    pub(super) async fn event(&mut self, ack: Option<u64>, name: &str, value: Option<&str>) {
        let value = value.unwrap_or("{}").as_bytes();
        let outcome = match name {
            "subscribe" => self.subscribe(ack, value).await,
            "unsubscribe" => self.unsubscribe(ack, value),
            _ => Err(Mistake::new(Problem::field("event", NO_EVENT), None)),
        };
        let Err(Mistake { problem, agent }) = outcome else { return };
        let Some(ack) = ack else { return self.problem(&problem, agent) };
        let message = problem.sentence();
        let error = error_frame(&problem, &message, agent);
        self.acknowledge(
            ack,
            AckDto { ok: false, agent_id: None, head: None, status: None, error: Some(error) },
        );
    }

    async fn subscribe(&mut self, ack: Option<u64>, value: &[u8]) -> Result<(), Mistake> {
        let wish = subscribe(value, self.api.config().json_depth)?;
        let mistake = |problem| Mistake::new(problem, Some(wish.agent));
        if wish.dialect.is_some_and(|dialect| dialect != Dialect::Agent) {
            return Err(mistake(Problem::new(
                Code::DialectUnknown,
                "only the dialect agent is supported here",
            )));
        }
        // A client that names no number has nothing yet. So it gets everything.
        let since = Sequence(wish.since.unwrap_or_default());
        let packed = wish.packed.unwrap_or_default();
        let followed = self.follow(wish.agent, since, wish.raw, packed).await.map_err(mistake)?;
        let Some(ack) = ack else {
            self.emit("subscribed", &followed);
            return Ok(());
        };
        let Subscribed { agent_id, head, status } = followed;
        let (agent_id, head, status) = (Some(agent_id), Some(head), Some(status));
        self.acknowledge(ack, AckDto { ok: true, agent_id, head, status, error: None });
        Ok(())
    }

    /// Follows an agent from a number on. If it is followed already, the new number replaces the old one.
    pub(super) async fn follow(
        &mut self,
        agent: AgentId,
        since: Sequence,
        raw: bool,
        packed: bool,
    ) -> Result<Subscribed, Problem> {
        self.subscriptions.check_room(agent, self.api.config().subscriptions_per_connection)?;
        let (agent, follower) = follow_to_deletion(&self.api, agent, Some(since)).await?;
        let (head, cursor) = (follower.head(), follower.cursor());
        let fold = DialectFold::for_socket_io(agent.id, Detail::of(raw, packed));
        let teller = Teller::new(fold, cursor, false, TextMode::SocketIo);
        self.subscriptions.insert(follower, teller, agent.deleted_at);
        Ok(Subscribed { agent_id: agent.id.into(), head: head.0, status: agent.status.as_str() })
    }

    fn unsubscribe(&mut self, ack: Option<u64>, value: &[u8]) -> Result<(), Mistake> {
        let agent = unsubscribe(value, self.api.config().json_depth)?;
        let deleted = self.subscriptions.remove(agent);
        let agent_id = agent.into();
        match ack {
            Some(ack) => self.acknowledge(
                ack,
                AckDto { ok: true, agent_id: Some(agent_id), head: None, status: None, error: None },
            ),
            None => self.emit("unsubscribed", &Unsubscribed { agent_id }),
        }
        self.deleted(agent, deleted);
        Ok(())
    }

    fn acknowledge(&mut self, ack: u64, content: AckDto<'_>) {
        self.frames(tagged(format!("{ACK}{ack}").as_bytes(), &[content]));
    }
}
