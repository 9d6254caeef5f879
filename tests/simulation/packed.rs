//! The client's half of packed deltas: frames in, events out.

use serde::Deserialize;
use tokenrail_domain::{AgentId, Event, EventBody, Part, Sequence, message_of};

#[derive(Deserialize)]
struct Frame {
    #[serde(rename = "type")]
    kind: String,
    payload: serde_json::Value,
}

/// The other entry of a page: a single event.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Alone {
    sequence_number: u64,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Item {
    Deltas(Deltas),
    Event(Alone),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Deltas {
    message_id: String,
    part: u32,
    event_type: String,
    #[serde(default)]
    tool_call_id: String,
    tool_name: Option<String>,
    from: u64,
    to: u64,
    texts: Vec<String>,
}

/// The events that the items of a history page contain.
///
/// # Errors
/// The difference, if a delta is not the saved one.
pub(crate) fn items(agent: AgentId, said: &[Event], items: &[String]) -> Result<Vec<Event>, String> {
    let mut told = Vec::with_capacity(said.len());
    for item in items {
        match serde_json::from_str(item).map_err(|error| error.to_string())? {
            Item::Deltas(deltas) => unpack(agent, deltas, said, &mut told)?,
            Item::Event(event) => told.push(known(said, event.sequence_number)?.clone()),
        }
    }
    all(said, told)
}

/// The events that the frames of a page contain. For a frame without deltas, only its number is read; the rest is
/// copied from the event.
///
/// # Errors
/// The difference, if a delta is not the saved one.
pub(crate) fn events(agent: AgentId, said: &[Event], frames: &[String]) -> Result<Vec<Event>, String> {
    let mut told = Vec::with_capacity(said.len());
    for frame in frames {
        let Frame { kind, payload } = serde_json::from_str(frame).map_err(|error| error.to_string())?;
        match kind.as_str() {
            "agent:message" => {
                let number = payload["sequence"].as_u64().unwrap_or(0);
                told.push(known(said, number)?.clone());
            }
            "agent:deltas" => {
                let deltas = serde_json::from_value(payload).map_err(|error| error.to_string())?;
                unpack(agent, deltas, said, &mut told)?;
            }
            _ => {}
        }
    }
    all(said, told)
}

fn all(said: &[Event], told: Vec<Event>) -> Result<Vec<Event>, String> {
    if told.len() == said.len() {
        Ok(told)
    } else {
        Err(format!("G2: of {} events {} are told", said.len(), told.len()))
    }
}

fn known(said: &[Event], number: u64) -> Result<&Event, String> {
    let event = said.iter().find(|event| event.sequence.0 == number);
    event.ok_or(format!("G3: event {number} is told and was not asked for"))
}

fn unpack(agent: AgentId, deltas: Deltas, said: &[Event], told: &mut Vec<Event>) -> Result<(), String> {
    let Deltas { message_id, part, event_type, tool_call_id, tool_name, from, to, texts } = deltas;
    if to + 1 - from != texts.len() as u64 {
        return Err(format!("G2: a packed frame from {from} to {to} has {} texts", texts.len()));
    }
    let id = message_id.parse().map_err(|_| format!("{message_id} is no id"))?;
    let (turn, message) = message_of(agent, id).ok_or("a packed frame names no message")?;
    let (part, mut tool) = (Part(part), tool_name);
    for (number, text) in (from..).zip(texts) {
        let saved = known(said, number)?;
        let body = match event_type.as_str() {
            "content_delta" => EventBody::TextDelta { message, part, text },
            "thinking_delta" => EventBody::ReasoningDelta { message, part, text },
            _ => EventBody::ToolInputDelta {
                message,
                part,
                call: tool_call_id.clone(),
                tool: tool.take(),
                fragment: text,
            },
        };
        if (&body, turn) != (&saved.body, saved.turn) {
            return Err(format!("G3: event {number} is told in a packed frame as it was not said"));
        }
        told.push(Event { sequence: Sequence(number), turn, body, ..saved.clone() });
    }
    Ok(())
}
