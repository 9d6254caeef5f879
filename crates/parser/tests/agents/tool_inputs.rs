//! The input of a tool is shown as the agent wrote it, whatever it is.

use serde_json::json;

use crate::Format;
use crate::pump::pump;

const GIVEN: [&str; 6] = [r#"{"a":1}"#, r#""*** Begin Patch\n""#, "[1,2]", "7", "true", r#""{""#];

/// A call with that input, in lines of the format.
fn call(format: Format, input: &str) -> Vec<String> {
    let lines = |lines: &[&str]| lines.iter().map(|line| line.replace("INPUT", input)).collect();
    match format {
        Format::Claude => lines(&[
            r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"c","name":"t","input":INPUT}]}}"#,
        ]),
        Format::Codex => lines(&[
            r#"{"type":"item.started","item":{"id":"c","type":"mcp_tool_call","server":"s","tool":"t","arguments":INPUT}}"#,
        ]),
        Format::Gemini => lines(&[r#"{"type":"tool_use","tool_name":"t","tool_id":"c","parameters":INPUT}"#]),
        Format::Opencode => lines(&[
            r#"{"type":"tool_use","part":{"tool":"t","callID":"c","state":{"status":"completed","input":INPUT}}}"#,
        ]),
        Format::Jsonl => lines(&[r#"{"type":"tool_call","id":"c","name":"t","input":INPUT}"#]),
        Format::Acp => lines(&[
            r#"{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"t","status":"in_progress","rawInput":INPUT}}}"#,
        ]),
        Format::Anthropic => {
            let whole = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"t","input":INPUT}}"#;
            lines(&[whole, r#"{"type":"content_block_stop","index":0}"#])
        }
        // Here it is text that contains a JSON value.
        Format::OpenAiChat => {
            let function = json!({ "name": "t", "arguments": input });
            let call = json!({ "index": 0, "id": "c", "function": function });
            let choice = json!({ "delta": { "tool_calls": [call] }, "finish_reason": "tool_calls" });
            vec![json!({ "choices": [choice] }).to_string()]
        }
        Format::OpenAiResponses => {
            let item = json!({ "type": "function_call", "call_id": "c", "name": "t", "arguments": input });
            vec![json!({ "type": "response.output_item.done", "output_index": 0, "item": item }).to_string()]
        }
        Format::Text => Vec::new(),
    }
}

#[test]
fn what_is_no_object_is_shown_as_given() {
    for format in Format::ALL.into_iter().filter(|format| *format != Format::Text) {
        for input in GIVEN {
            let lines = call(format, input);
            let seen = pump(&format.parse(lines.iter().map(String::as_bytes)));
            let calls: Vec<_> = seen.calls.iter().map(|call| call.input.as_str()).collect();
            assert_eq!(calls, [input], "{format:?}");
        }
    }
}

#[test]
fn what_is_not_given_is_an_empty_object() {
    for format in [Format::Claude, Format::Codex, Format::Gemini, Format::Opencode, Format::Anthropic] {
        let lines: Vec<_> = call(format, "null");
        let seen = pump(&format.parse(lines.iter().map(String::as_bytes)));
        assert_eq!(seen.calls[0].input.as_str(), "{}", "{format:?}");
    }
}

/// Tools of the `OpenAI` APIs may take text that is not JSON, or only resembles it.
#[test]
fn free_text_is_a_string_also_where_it_reads_as_json() {
    for text in ["*** Begin Patch", "7", r#"{"a":1}"#, r#""quoted""#, ""] {
        let expected = json!(text).to_string();
        let call =
            json!({ "index": 0, "id": "c", "type": "custom", "custom": { "name": "t", "input": text } });
        let choice = json!({ "delta": { "tool_calls": [call] }, "finish_reason": "tool_calls" });
        let item = json!({ "type": "custom_tool_call", "call_id": "c", "name": "t", "input": text });
        let done = json!({ "type": "response.output_item.done", "output_index": 0, "item": item });
        for (format, line) in [
            (Format::OpenAiChat, json!({ "choices": [choice] }).to_string()),
            (Format::OpenAiResponses, done.to_string()),
        ] {
            let seen = pump(&format.parse([line.as_bytes()]));
            assert_eq!(
                (seen.calls[0].tool.as_str(), seen.calls[0].input.as_str()),
                ("t", &*expected),
                "{format:?}"
            );
        }
    }
}

#[test]
fn a_chat_server_may_give_arguments_as_they_are() {
    for input in ["[1,2]", "7", r#"{"a":1}"#] {
        let line = r#"{"choices":[{"message":{"tool_calls":[{"id":"c","function":{"name":"t","arguments":INPUT}}]},"finish_reason":"stop"}]}"#;
        let line = line.replace("INPUT", input);
        let seen = pump(&Format::OpenAiChat.parse([line.as_bytes()]));
        assert_eq!(seen.calls[0].input.as_str(), input);
    }
}
