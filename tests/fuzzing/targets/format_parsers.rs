//! As `agent_parser`, for every other format: each of them must accept any input.

use tokenrail_parser::{JsonlMapping, formats};

use super::agent_parser::check;

pub(crate) const WORDS: &[&str] = &[
    "\"id\":\"item_0\",",
    "\"id\":1",
    "\"text\":\"a\"",
    "\"delta\":true",
    "\"role\":\"assistant\"",
    "\"status\":\"completed\"",
    "\"sessionID\":\"s\"",
    "\"session_id\":\"s\"",
    "\"thread_id\":\"t\"",
    "\"method\":",
    "\"params\":",
    "\"part\":",
    "\"item\":",
    "\"error\":",
    "\"usage\":{}",
    "thread.started",
    "turn.started",
    "turn.completed",
    "turn.failed",
    "item.started",
    "item.updated",
    "item.completed",
    "agent_message",
    "reasoning",
    "command_execution",
    "file_change",
    "mcp_tool_call",
    "item/agentMessage/delta",
    "item/started",
    "item/completed",
    "turn/completed",
    "init",
    "message",
    "tool_use",
    "tool_result",
    "result",
    "text",
    "step_start",
    "step_finish",
    "delta",
    "tool_call",
    "{\"type\":\"delta\",\"text\":\"a\"}\n",
    "{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"a\",\"delta\":true}\n",
    "{\"type\":\"item.completed\",\"item\":{\"id\":\"item_0\",\"type\":\"agent_message\",\"text\":\"a\"}}\n",
    "{\"method\":\"item/agentMessage/delta\",\"params\":{\"itemId\":\"m\",\"delta\":\"a\"}}\n",
    "{\"type\":\"text\",\"sessionID\":\"s\",\"part\":{\"id\":\"p\",\"type\":\"text\",\"text\":\"a\"}}\n",
];

pub(crate) fn run(data: &[u8]) {
    let mapping = JsonlMapping::default();
    for format in formats().filter(|format| format.name != "claude") {
        check(data, || format.parser(&mapping));
    }
}
