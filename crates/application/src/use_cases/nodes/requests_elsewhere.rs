//! The open permission requests of agents of other nodes, read from their journals.
//!
//! A node knows the requests of its own agents from their output. Those of the others are in the raw lines of their
//! notices, which the parser of the agent's type reads again.

use tokenrail_domain::{Agent, AgentId, AgentStatus, Event, EventBody, Notice, Said, Sequence};
use tokenrail_ports::{AgentFilter, StoreError};

use crate::core::Core;
use crate::node_state::ReadUpTo;
use crate::open_requests::RequestChange;

impl Core {
    /// Reads what has become of the permission requests of an agent, if it is one of another node.
    pub(super) async fn read_requests_elsewhere(&self, agent: &Agent) -> Result<(), StoreError> {
        if self.is_here(agent) {
            return Ok(());
        }
        if agent.status != AgentStatus::Running {
            self.forget_requests_elsewhere(agent.id);
            return Ok(());
        }
        let known = self.requests_elsewhere.read().get(&agent.id).copied();
        let mut up_to = if let Some(known) = known.filter(|known| known.turn == agent.turn) {
            known.sequence
        } else {
            self.open_requests.clear(agent.id);
            self.begin_of_turn(agent).await?
        };
        let mut parser = self.outside.types.get(&agent.kind).map(|kind| (kind.parser)());
        while up_to < agent.head {
            let page = self.outside.journal.messages(agent.id, up_to, self.limits.reading.page()).await?;
            if let Some(parser) = &mut parser {
                let mut said = Vec::new();
                for line in page.events.iter().filter(|event| is_about_permission(event)).flat_map(lines) {
                    parser.parse(line, &mut said);
                }
                self.open_requests.apply(agent.id, changes(said, self.now()));
            }
            if page.up_to <= up_to {
                break;
            }
            up_to = page.up_to;
        }
        let read = ReadUpTo { turn: agent.turn, sequence: up_to };
        self.requests_elsewhere.read().insert(agent.id, read);
        Ok(())
    }

    async fn begin_of_turn(&self, agent: &Agent) -> Result<Sequence, StoreError> {
        let open = self.outside.agents.open_turns(agent.id).await?;
        let running = open.into_iter().find(|turn| turn.number == agent.turn);
        let first = running.and_then(|turn| turn.first_sequence);
        Ok(first.map_or(Sequence::START, Sequence::before))
    }

    /// Reads the requests of all agents of other nodes that run.
    pub(super) async fn read_all_requests_elsewhere(&self) -> Result<(), StoreError> {
        let limits = &self.limits.lists;
        let mut filter = AgentFilter {
            statuses: vec![AgentStatus::Running],
            limit: limits.list_agents,
            ..AgentFilter::default()
        };
        let mut running = Vec::new();
        loop {
            let page = self.outside.agents.list(filter.clone(), limits.bounds()).await?;
            for listed in &page.items {
                running.push(listed.agent.id);
                self.read_requests_elsewhere(&listed.agent).await?;
            }
            filter.before = page.items.last().map(|listed| listed.agent.id);
            if !page.more || filter.before.is_none() {
                break;
            }
        }
        let ended: Vec<_> = self.requests_elsewhere.read().keys().copied().collect();
        for agent in ended.into_iter().filter(|agent| !running.contains(agent)) {
            self.forget_requests_elsewhere(agent);
        }
        Ok(())
    }

    /// Forgets the requests of an agent of another node that no longer runs.
    pub(super) fn forget_requests_elsewhere(&self, agent: AgentId) {
        if self.requests_elsewhere.read().remove(&agent).is_some() {
            self.open_requests.clear(agent);
        }
    }
}

fn is_about_permission(event: &Event) -> bool {
    let subtypes = [Notice::PERMISSION_REQUEST, Notice::PERMISSION_RESOLVED];
    matches!(&event.body, EventBody::Notice(notice) if subtypes.contains(&notice.subtype.as_str()))
}

/// The raw lines of an event. Those that were read before it and say nothing are among them.
fn lines(event: &Event) -> impl Iterator<Item = &[u8]> {
    event.raw.as_deref().unwrap_or_default().split(|byte| *byte == b'\n')
}

fn changes(said: Vec<Said>, now: tokenrail_domain::Timestamp) -> Vec<RequestChange> {
    let change = |said| match said {
        Said::Asked(request) => {
            let asked_at = request.asked_at.unwrap_or(now);
            Some(RequestChange::Asked { request, asked_at })
        }
        Said::Settled { request_id, reply: _ } => Some(RequestChange::Settled { request_id }),
        _ => None,
    };
    said.into_iter().filter_map(change).collect()
}
