//! The native event stream (SSE): one block for each event.

use std::io::Write as _;

use tokenrail_domain::{AgentId, Event};

use crate::dto::AgentMessageDto;

/// Appends the block of one event.
pub(crate) fn block(agent: AgentId, event: &Event, raw: bool, named: bool, out: &mut Vec<u8>) {
    let message = AgentMessageDto::new(agent, event, raw);
    let begin = out.len();
    // Writing to memory cannot fail, and nothing in a message refuses to be written.
    let _ = writeln!(out, "id: {}", event.sequence);
    if named {
        out.extend_from_slice(b"event: ");
        // A notice's word is the agent's own: a line end in it would forge a field.
        out.extend(message.event_type().bytes().filter(|byte| !matches!(byte, b'\n' | b'\r' | 0)));
        out.push(b'\n');
    }
    out.extend_from_slice(b"data: ");
    let data = out.len();
    if serde_json::to_writer(&mut *out, &message).is_err() {
        out.truncate(begin);
        return;
    }
    one_line(&mut out[data..]);
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
