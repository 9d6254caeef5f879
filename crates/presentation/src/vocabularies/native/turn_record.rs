//! The record of one turn: one JSON object. It is written while the turn is read, so a turn of any length takes only
//! the memory of one page.

use bytes::Bytes;
use futures_util::stream::{self, Stream};
use serde::Serialize;
use tokenrail_application::{AgentService, Refusal};
use tokenrail_domain::{Agent, AgentId, Event, EventBody, Sequence, Turn, TurnNumber};

use super::lineage::Lineage;
use crate::api::Api;
use crate::events;
use crate::json::{ItemList, JsonList, ListFold};
use crate::vocabularies::FOREIGN;
use crate::vocabularies::native::dto::message::AgentMessageDto;
use crate::vocabularies::native::dto::turn::{RawLineDto, TurnRecordDto};

/// The lists of a record.
#[derive(Debug, Clone, Copy)]
enum List {
    Messages,
    RawAgentMessages,
    Foreign(ItemList),
}

impl List {
    /// All lists, in order.
    fn all() -> impl Iterator<Item = Self> {
        let foreign = FOREIGN.iter().filter_map(|vocabulary| vocabulary.record);
        [Self::Messages, Self::RawAgentMessages].into_iter().chain(foreign.map(Self::Foreign))
    }

    fn name(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::RawAgentMessages => "rawAgentMessages",
            Self::Foreign(record) => record.name,
        }
    }
}

/// The part of a record that is still to be written.
pub(crate) struct TurnRecord {
    service: AgentService,
    id: AgentId,
    turn: TurnNumber,
    depth: usize,
    /// The events of the turn: those after the first sequence number, up to the second.
    range: (Sequence, Sequence),
    before: Option<Event>,
    /// The fields before the lists, until they are written.
    beginning: Option<String>,
    lists: std::vec::IntoIter<List>,
    list: Option<OpenList>,
}

/// A list that is being written.
struct OpenList {
    cursor: Sequence,
    out: JsonList,
    fold: Items,
}

/// Turns events into the items of a list.
enum Items {
    Messages(Lineage),
    RawAgentMessages,
    Foreign(Box<dyn ListFold>),
}

impl TurnRecord {
    /// The record of a turn. For a running turn, it contains the events so far.
    pub(crate) async fn new(api: &Api, agent: &Agent, turn: &Turn) -> Result<Self, Refusal> {
        let service = api.service().clone();
        let range = match turn.first_sequence {
            Some(first) => (Sequence(first.0.saturating_sub(1)), turn.last_sequence.unwrap_or(agent.head)),
            None => (agent.head, agent.head),
        };
        let before = event(&service, agent.id, range.0).await?;
        let result = match turn.last_sequence {
            Some(last) => event(&service, agent.id, last).await?,
            None => None,
        };
        let result = result.as_ref().and_then(|event| match &event.body {
            EventBody::TurnResult(result) => Some(&**result),
            _ => None,
        });
        let beginning = json(&TurnRecordDto::new(agent, turn, result));
        Ok(Self {
            service,
            id: agent.id,
            turn: turn.number,
            depth: api.config().json_depth,
            range,
            before,
            beginning: Some(beginning),
            lists: List::all().collect::<Vec<_>>().into_iter(),
            list: None,
        })
    }

    /// The bytes of the record, generated as the client reads them.
    pub(crate) fn bytes(self) -> impl Stream<Item = Result<Bytes, Refusal>> {
        stream::try_unfold(self, |mut record| async move {
            let bytes = record.next().await?;
            Ok(bytes.map(|bytes| (bytes, record)))
        })
    }

    async fn next(&mut self) -> Result<Option<Bytes>, Refusal> {
        if let Some(mut beginning) = self.beginning.take() {
            // Remove the closing brace, because the lists come before it.
            beginning.pop();
            self.open(&mut beginning);
            return Ok(Some(beginning.into()));
        }
        let Some(list) = &mut self.list else { return Ok(None) };
        let events = events::page(&self.service, self.id, list.cursor, self.range.1).await?;
        let mut out = if let Some(last) = events.last() {
            list.cursor = last.sequence;
            for event in &events {
                list.write(self.id, event, self.depth);
            }
            list.out.take()
        } else {
            let mut end = "]".to_owned();
            self.open(&mut end);
            end.into_bytes()
        };
        // An empty chunk would end the response body early.
        if out.is_empty() {
            out.push(b'\n');
        }
        Ok(Some(out.into()))
    }

    /// Begins the next list, or ends the object.
    fn open(&mut self, out: &mut String) {
        let Some(list) = self.lists.next() else {
            self.list = None;
            out.push('}');
            return;
        };
        out.push_str(",\"");
        out.push_str(list.name());
        out.push_str("\":[");
        let fold = match list {
            List::Messages => Items::Messages(Lineage::new(self.id, self.before.as_ref())),
            List::RawAgentMessages => Items::RawAgentMessages,
            List::Foreign(record) => Items::Foreign((record.items)(self.id, self.turn)),
        };
        self.list = Some(OpenList { cursor: self.range.0, out: JsonList::default(), fold });
    }
}

impl OpenList {
    fn write(&mut self, agent: AgentId, event: &Event, depth: usize) {
        match &mut self.fold {
            Items::Messages(lineage) => {
                let parent = lineage.parent(event);
                if !event.body.is_delta() {
                    self.out.item(&AgentMessageDto::new(agent, event, false).with_parent(parent));
                }
            }
            Items::RawAgentMessages => {
                let lines = event.raw.iter().flat_map(|raw| raw.split(|byte| *byte == b'\n'));
                lines.for_each(|line| self.out.item(&RawLineDto { line, depth }));
            }
            Items::Foreign(fold) => fold.items(event, &mut self.out),
        }
    }
}

/// The event with that sequence number.
async fn event(service: &AgentService, id: AgentId, number: Sequence) -> Result<Option<Event>, Refusal> {
    let Some(after) = number.0.checked_sub(1) else { return Ok(None) };
    let (events, _) = service.events(id, Sequence(after), Some(1)).await?;
    Ok(events.into_iter().next().filter(|event| event.sequence == number))
}

fn json(value: &impl Serialize) -> String {
    // Serializing could fail only for a map whose keys are not strings. There is none here.
    serde_json::to_string(value).unwrap_or_default()
}
