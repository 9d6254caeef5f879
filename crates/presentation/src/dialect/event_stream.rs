//! The native event stream (SSE): one block for each event, or for packed deltas.

use std::io::Write as _;

use serde::Serialize;
use tokenrail_domain::{AgentId, Sequence};

use super::Packed;
use crate::dto::{AgentMessageDto, DeltasDto};

/// The event's name of packed deltas.
const DELTAS: &str = "deltas";

/// Appends the block of one event, or of packed deltas, whose id is the number of the last one.
pub(crate) fn block(agent: AgentId, told: Packed<'_>, raw: bool, named: bool, out: &mut Vec<u8>) {
    match told {
        Packed::Event(event) => {
            let message = AgentMessageDto::new(agent, event, raw);
            write(event.sequence, named.then(|| message.event_type()), &message, out);
        }
        Packed::Deltas(run) => {
            if let (Some(deltas), Some(last)) = (DeltasDto::new(agent, run), run.last()) {
                write(last.sequence, named.then_some(DELTAS), &deltas, out);
            }
        }
    }
}

fn write(id: Sequence, name: Option<&str>, data: &impl Serialize, out: &mut Vec<u8>) {
    let begin = out.len();
    // Writing to memory cannot fail, and nothing in a message refuses to be written.
    let _ = writeln!(out, "id: {id}");
    if let Some(name) = name {
        out.extend_from_slice(b"event: ");
        // A notice's word is the agent's own: a line end in it would forge a field.
        out.extend(name.bytes().filter(|byte| !matches!(byte, b'\n' | b'\r' | 0)));
        out.push(b'\n');
    }
    out.extend_from_slice(b"data: ");
    let json = out.len();
    if serde_json::to_writer(&mut *out, data).is_err() {
        out.truncate(begin);
        return;
    }
    one_line(&mut out[json..]);
    out.extend_from_slice(b"\n\n");
}

/// Makes JSON fit into one line: in JSON, a bare line end can only stand between tokens.
pub(super) fn one_line(json: &mut [u8]) {
    for byte in json {
        if matches!(*byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}
