//! Fields may be in any order: an agent may print a result before its type.

use serde_json::Value;
use tokenrail_domain::{ContentBlock, EventBody, JsonText, Said};

use crate::fixtures::recordings;

/// Writes a value with its fields in reverse alphabetical order.
fn backwards(value: &Value) -> String {
    let mut out = String::new();
    write_backwards(value, &mut out);
    out
}

fn write_backwards(value: &Value, out: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut separator = '{';
            for (name, value) in fields.iter().rev() {
                out.push(separator);
                *out += &Value::from(name.as_str()).to_string();
                out.push(':');
                write_backwards(value, out);
                separator = ',';
            }
            *out += if fields.is_empty() { "{}" } else { "}" };
        }
        Value::Array(elements) => {
            let mut separator = '[';
            for element in elements {
                out.push(separator);
                write_backwards(element, out);
                separator = ',';
            }
            *out += if elements.is_empty() { "[]" } else { "]" };
        }
        _ => *out += &value.to_string(),
    }
}

/// Normalizes the order of fields in JSON from the agent.
fn sort(said: &mut Said) {
    let sort = |json: &mut JsonText| {
        if let Ok(value) = serde_json::from_str::<Value>(json.as_str()) {
            *json = JsonText::new_unchecked(value.to_string());
        }
    };
    match said {
        Said::Event(EventBody::ToolCall(call)) => sort(&mut call.input),
        Said::Event(EventBody::ToolResult(result)) => sort(&mut result.content),
        Said::Event(EventBody::Usage(usage)) => sort(&mut usage.usage),
        Said::Event(EventBody::Notice(notice)) => sort(&mut notice.data),
        Said::Event(EventBody::Message(message)) => {
            for block in &mut message.blocks {
                if let ContentBlock::ToolUse { input, .. } | ContentBlock::Other(input) = block {
                    sort(input);
                }
            }
        }
        Said::End { rest, .. } => {
            for (_, block) in rest {
                if let ContentBlock::ToolUse { input, .. } | ContentBlock::Other(input) = block {
                    sort(input);
                }
            }
        }
        Said::Close(close) => close.usage.iter_mut().for_each(sort),
        _ => {}
    }
}

#[test]
fn the_order_of_fields_says_nothing() {
    for recording in recordings() {
        let turned = |write: fn(&Value) -> String| {
            let lines = recording.lines().map(|line| match serde_json::from_slice::<Value>(line) {
                // Tokenrail's own lines are recognized by their first bytes, and a blank marks foreign lines that
                // resemble them.
                Ok(value) if value.get("tokenrail").is_none() => write(&value).into_bytes(),
                _ => line.to_vec(),
            });
            let lines: Vec<Vec<u8>> = lines.collect();
            let mut said = recording.format.parse(lines.iter().map(Vec::as_slice));
            said.iter_mut().for_each(sort);
            said
        };
        let mut said = recording.format.parse(recording.lines());
        said.iter_mut().for_each(sort);
        assert_eq!(turned(Value::to_string), said, "{}: in alphabetical order", recording.name);
        assert_eq!(turned(backwards), said, "{}: in the reverse of it", recording.name);
    }
}
