//! The parent of each of an agent's messages. It is computed by a fold of the journal, and not stored.

use std::collections::{HashMap, VecDeque};

use tokenrail_domain::{AgentId, Event, EventBody, event_id};
use uuid::Uuid;

/// Number of tool calls that are remembered as parents. A child of an older call gets the previous message as its
/// parent.
const CALLS_KEPT: usize = 4096;

/// Finds the parent of each message of a turn:
///
/// * the parent of a tool result is its tool call;
/// * the parent of a message or tool call of a sub-agent is the call that started the sub-agent;
/// * the parent of any other message is the previous message that is not from a sub-agent, even across turns.
///
/// Deltas are pieces of a message and have no parent. The fold begins with the first event of a turn.
#[derive(Debug)]
pub(crate) struct Lineage {
    agent: AgentId,
    last: Option<Uuid>,
    calls: HashMap<String, Uuid>,
    oldest: VecDeque<String>,
}

impl Lineage {
    /// Begins with a turn. `before` is the event before the turn's first event: the result of the previous turn.
    pub(crate) fn new(agent: AgentId, before: Option<&Event>) -> Self {
        let last = before.map(|event| event_id(agent, event));
        Self { agent, last, calls: HashMap::new(), oldest: VecDeque::new() }
    }

    /// Applies the next event, and returns its parent.
    pub(crate) fn parent(&mut self, event: &Event) -> Option<Uuid> {
        if event.body.is_delta() {
            return None;
        }
        let id = event_id(self.agent, event);
        let hangs_on = hangs_on(&event.body).and_then(|call| self.calls.get(call).copied());
        let parent = hangs_on.or(self.last);
        if let EventBody::ToolCall(made) = &event.body {
            self.remember(&made.call, id);
        }
        if !is_of_sub_agent(&event.body) {
            self.last = Some(id);
        }
        parent
    }

    fn remember(&mut self, call: &str, id: Uuid) {
        if self.calls.insert(call.to_owned(), id).is_none() {
            self.oldest.push_back(call.to_owned());
        }
        if CALLS_KEPT < self.oldest.len()
            && let Some(oldest) = self.oldest.pop_front()
        {
            self.calls.remove(&oldest);
        }
    }
}

fn hangs_on(body: &EventBody) -> Option<&str> {
    match body {
        // Even if a sub-agent made the call: the call itself is the closer parent.
        EventBody::ToolResult(result) => Some(&result.call),
        EventBody::ToolCall(call) => call.parent_call.as_deref(),
        EventBody::Message(message) => message.parent_call.as_deref(),
        _ => None,
    }
}

fn is_of_sub_agent(body: &EventBody) -> bool {
    match body {
        EventBody::ToolResult(result) => result.parent_call.is_some(),
        EventBody::ToolCall(call) => call.parent_call.is_some(),
        EventBody::Message(message) => message.parent_call.is_some(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use tokenrail_domain::{
        CompleteMessage, JsonText, MessageOrdinal, MessageOutcome, Part, Sequence, Timestamp, ToolCall,
        ToolResult, TurnNumber,
    };

    use super::*;

    fn call(call: &str, parent: Option<&str>) -> EventBody {
        let parent_call = parent.map(str::to_owned);
        EventBody::ToolCall(Box::new(ToolCall {
            call: call.into(),
            tool: "Task".into(),
            input: JsonText::null(),
            parent_call,
        }))
    }

    fn result(call: &str, parent: Option<&str>) -> EventBody {
        EventBody::ToolResult(Box::new(ToolResult {
            call: call.into(),
            content: JsonText::null(),
            is_error: false,
            parent_call: parent.map(str::to_owned),
            patch: None,
        }))
    }

    fn message(ordinal: u32, parent: Option<&str>) -> EventBody {
        EventBody::Message(Box::new(CompleteMessage {
            message: MessageOrdinal(ordinal),
            blocks: Vec::new(),
            first_sequence: None,
            outcome: MessageOutcome::Complete,
            parent_call: parent.map(str::to_owned),
        }))
    }

    /// The parents as the positions of the events, from 1; 0 is the event before the first.
    fn parents(bodies: Vec<EventBody>) -> Vec<Option<usize>> {
        let agent = AgentId::new(Timestamp(5), [3; 10]);
        let number = |(index, body): (usize, EventBody)| Event {
            sequence: Sequence(index as u64 + 10),
            at: Timestamp(7),
            turn: TurnNumber(2),
            body,
            raw: None,
        };
        let before =
            number((0, EventBody::UserMessage { content: "the turn before".into(), images: Vec::new() }));
        let events: Vec<_> =
            bodies.into_iter().enumerate().map(|(at, body)| number((at + 1, body))).collect();
        let ids: Vec<_> =
            std::iter::once(&before).chain(&events).map(|event| event_id(agent, event)).collect();
        let mut lineage = Lineage::new(agent, Some(&before));
        let parents = events.iter().map(|event| lineage.parent(event));
        parents.map(|id| id.and_then(|id| ids.iter().position(|other| *other == id))).collect()
    }

    #[test]
    fn messages_follow_each_other_and_results_hang_on_their_calls() {
        let said = EventBody::TextDelta { message: MessageOrdinal(0), part: Part(0), text: "a".into() };
        let asked = EventBody::UserMessage { content: "hi".into(), images: Vec::new() };
        let bodies = vec![
            asked,
            said,
            call("a", None),
            call("b", None),
            message(0, None),
            result("b", None),
            result("a", None),
            message(1, None),
        ];
        let expected = [Some(0), None, Some(1), Some(3), Some(4), Some(4), Some(3), Some(7)];
        assert_eq!(parents(bodies), expected);
    }

    #[test]
    fn a_sub_agent_hangs_on_its_call_and_the_session_goes_on_without_it() {
        let bodies = vec![
            call("outer", None),
            message(0, Some("outer")),
            call("inner", Some("outer")),
            result("inner", Some("outer")),
            message(1, None),
            result("outer", None),
            message(2, Some("a call of an earlier turn")),
        ];
        let expected = [Some(0), Some(1), Some(1), Some(3), Some(1), Some(1), Some(6)];
        assert_eq!(parents(bodies), expected);
    }

    #[test]
    fn calls_are_remembered_within_a_bound() {
        let count = CALLS_KEPT + 1;
        let mut bodies: Vec<_> = (0..count).map(|n| call(&n.to_string(), None)).collect();
        bodies.extend([result("0", None), result("1", None)]);
        let parents = parents(bodies);
        assert_eq!(parents[count..], [Some(count), Some(2)], "the oldest is forgotten");
    }
}
