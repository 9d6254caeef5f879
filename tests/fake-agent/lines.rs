//! The lines that Claude Code 2.1.330 prints.

use std::io::{self, BufWriter, StdoutLock, Write};

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

const MODEL: &str = "claude-opus-5-5";

/// The text of delta `index`: its number, with leading zeros up to this many bytes.
pub(crate) fn delta_text(index: u64, bytes: usize) -> String {
    format!("{index:0>width$} ", width = bytes.saturating_sub(1))
}

/// The text of a delta with a time: microseconds of the monotonic clock, which all processes of this machine share.
pub(crate) fn time_text() -> String {
    let now = clock_gettime(ClockId::Monotonic);
    format!("{} ", now.tv_sec * 1_000_000 + now.tv_nsec / 1000)
}

/// Prints lines, each with its own id.
pub(crate) struct Printer {
    out: BufWriter<StdoutLock<'static>>,
    unbuffered: bool,
    session: String,
    /// The number of ids so far.
    ids: u64,
    messages: u32,
    pub(crate) bytes: usize,
}

impl Printer {
    pub(crate) fn new(session: Option<String>, unbuffered: bool) -> Self {
        Self {
            out: BufWriter::with_capacity(64 << 10, io::stdout().lock()),
            unbuffered,
            session: session.unwrap_or_else(|| "5e551011-0000-4000-8000-000000000001".to_owned()),
            ids: 0,
            messages: 0,
            bytes: 0,
        }
    }

    pub(crate) fn init(&mut self) -> io::Result<()> {
        let cwd = std::env::current_dir()?;
        self.line(json!({
            "type": "system", "subtype": "init", "cwd": cwd.to_string_lossy(), "tools": ["Bash", "Read"],
            "mcp_servers": [], "model": MODEL, "permissionMode": "default", "slash_commands": [],
            "apiKeySource": "none", "claude_code_version": "2.1.330", "output_style": "default",
        }))?;
        self.line(json!({"type": "system", "subtype": "status", "status": "requesting"}))
    }

    pub(crate) fn message_start(&mut self) -> io::Result<()> {
        self.messages += 1;
        let message = json!({
            "model": MODEL, "id": self.message_id(), "type": "message", "role": "assistant", "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 12, "output_tokens": 1},
        });
        self.event(&json!({"type": "message_start", "message": message}))
    }

    pub(crate) fn text_start(&mut self) -> io::Result<()> {
        let block = json!({"type": "text", "text": ""});
        self.event(&json!({"type": "content_block_start", "index": 0, "content_block": block}))
    }

    pub(crate) fn text_delta(&mut self, text: &str) -> io::Result<()> {
        // Written as text and not as a value, because a flood consists of these lines.
        let line = format!(
            "{{\"type\":\"stream_event\",\"event\":{{\"type\":\"content_block_delta\",\"index\":0,\
             \"delta\":{{\"type\":\"text_delta\",\"text\":{}}}}},\"session_id\":{},\"parent_tool_use_id\":null,\
             \"uuid\":\"{}\",\"api_message_id\":\"{}\"}}\n",
            json!(text),
            json!(self.session),
            self.next_id(),
            self.message_id(),
        );
        self.raw(line.as_bytes())
    }

    /// Ends the text block and its message.
    pub(crate) fn text_end(&mut self, text: &str, output_tokens: u64) -> io::Result<()> {
        self.assistant(&json!({"type": "text", "text": text}))?;
        self.message_end("end_turn", output_tokens)
    }

    /// A whole message that calls a tool.
    pub(crate) fn tool_call(&mut self, call: &str, command: &str) -> io::Result<()> {
        self.message_start()?;
        let block = json!({"type": "tool_use", "id": call, "name": "Bash", "input": {}});
        self.event(&json!({"type": "content_block_start", "index": 0, "content_block": block}))?;
        let input = json!({"command": command});
        for fragment in ["{\"command\": ", &format!("{}}}", json!(command))] {
            let delta = json!({"type": "input_json_delta", "partial_json": fragment});
            self.event(&json!({"type": "content_block_delta", "index": 0, "delta": delta}))?;
        }
        self.assistant(&json!({"type": "tool_use", "id": call, "name": "Bash", "input": input}))?;
        self.message_end("tool_use", 9)
    }

    pub(crate) fn tool_result(&mut self, call: &str, content: &str) -> io::Result<()> {
        let result =
            json!({"tool_use_id": call, "type": "tool_result", "content": content, "is_error": false});
        self.line(json!({
            "type": "user", "message": {"role": "user", "content": [result]}, "parent_tool_use_id": null,
            "tool_use_result": {"stdout": content, "stderr": "", "interrupted": false, "isImage": false},
        }))
    }

    pub(crate) fn result(&mut self, text: &str, output_tokens: u64) -> io::Result<()> {
        let result = self.result_line(text, output_tokens);
        self.line(result)
    }

    /// The first half of the result, as if the output was cut off.
    pub(crate) fn half_result(&mut self, text: &str, output_tokens: u64) -> io::Result<()> {
        let line = self.with_ids(self.result_line(text, output_tokens));
        self.raw(&line.as_bytes()[..line.len() / 2])
    }

    /// Prints bytes unchanged.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.bytes += bytes.len();
        if self.unbuffered { self.out.flush() } else { Ok(()) }
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn result_line(&self, text: &str, output_tokens: u64) -> Value {
        json!({
            "type": "result", "subtype": "success", "is_error": false, "duration_ms": 1000,
            "duration_api_ms": 900, "num_turns": self.messages, "result": text, "stop_reason": "end_turn",
            "total_cost_usd": 0.01, "usage": {"input_tokens": 12, "output_tokens": output_tokens},
            "permission_denials": [],
        })
    }

    /// Ends the message without repeating its text.
    pub(crate) fn message_end(&mut self, stop_reason: &str, output_tokens: u64) -> io::Result<()> {
        self.event(&json!({"type": "content_block_stop", "index": 0}))?;
        self.event(&json!({
            "type": "message_delta", "delta": {"stop_reason": stop_reason, "stop_sequence": null},
            "usage": {"input_tokens": 12, "output_tokens": output_tokens},
        }))?;
        self.event(&json!({"type": "message_stop"}))
    }

    fn assistant(&mut self, block: &Value) -> io::Result<()> {
        let message = json!({
            "model": MODEL, "id": self.message_id(), "type": "message", "role": "assistant", "content": [block],
            "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 12, "output_tokens": 1},
        });
        self.line(json!({"type": "assistant", "message": message, "parent_tool_use_id": null}))
    }

    fn event(&mut self, event: &Value) -> io::Result<()> {
        let id = self.message_id();
        self.line(json!({
            "type": "stream_event", "event": event, "parent_tool_use_id": null, "api_message_id": id,
        }))
    }

    fn line(&mut self, line: Value) -> io::Result<()> {
        let mut text = self.with_ids(line);
        text.push('\n');
        self.raw(text.as_bytes())
    }

    fn with_ids(&mut self, mut line: Value) -> String {
        line["session_id"] = self.session.as_str().into();
        line["uuid"] = self.next_id().into();
        line.to_string()
    }

    fn message_id(&self) -> String {
        format!("msg_fake{:04}", self.messages)
    }

    /// An id that looks random, but is the same in each run.
    fn next_id(&mut self) -> String {
        self.ids += 1;
        let hex = format!("{:016x}{:016x}", scatter(self.ids), scatter(!self.ids));
        format!("{}-{}-4{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
    }
}

fn scatter(number: u64) -> u64 {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}
