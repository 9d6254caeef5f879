//! The headers that repeat parts of a message of the Model Context Protocol.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::HeaderValue;
use serde_json::Value;

/// Where a message of version 2026-07-28 says which version it is. Earlier ones say nothing.
const VERSION: &str = "/params/_meta/io.modelcontextprotocol~1protocolVersion";

/// Marks a name that is written in base64, because a header cannot contain all characters.
const ENCODED: (&str, &str) = ("=?base64?", "?=");

/// The headers of a message. There are none if the message does not say which version it is.
pub(super) fn mirrors(message: &Value) -> Vec<(&'static str, HeaderValue)> {
    let Some(version) = message.pointer(VERSION).and_then(Value::as_str) else { return Vec::new() };
    let method = message.get("method").and_then(Value::as_str);
    let named = match method {
        Some("tools/call" | "prompts/get") => "/params/name",
        Some("resources/read") => "/params/uri",
        _ => "",
    };
    let name = message.pointer(named).and_then(Value::as_str).map(as_header);
    let all = [
        ("mcp-protocol-version", Some(version.to_owned())),
        ("mcp-method", method.map(str::to_owned)),
        ("mcp-name", name),
    ];
    // The server refuses a message that lacks a header.
    let legal = |(header, value): (_, Option<String>)| Some((header, HeaderValue::from_str(&value?).ok()?));
    all.into_iter().filter_map(legal).collect()
}

/// A name as a header contains it.
fn as_header(name: &str) -> String {
    let is_plain = name.bytes().all(|byte| matches!(byte, b' '..=b'~')) && name.trim() == name;
    let looks_encoded = name.starts_with(ENCODED.0) && name.ends_with(ENCODED.1);
    if is_plain && !looks_encoded {
        return name.to_owned();
    }
    format!("{}{}{}", ENCODED.0, STANDARD.encode(name), ENCODED.1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn texts(message: &Value) -> Vec<String> {
        mirrors(message).iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect()
    }

    #[test]
    fn only_a_message_that_says_its_version_has_headers() {
        let call = |meta| json!({"method": "tools/call", "params": {"name": "wait", "_meta": meta}});
        assert!(texts(&call(json!({"progressToken": 1}))).is_empty());
        let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
        let expected = ["mcp-protocol-version: 2026-07-28", "mcp-method: tools/call", "mcp-name: wait"];
        assert_eq!(texts(&call(meta.clone())), expected);
        let list = json!({"method": "tools/list", "params": {"name": "x", "_meta": meta}});
        assert_eq!(
            texts(&list),
            expected[..1]
                .iter()
                .map(|text| (*text).to_owned())
                .chain(["mcp-method: tools/list".to_owned()])
                .collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_name_that_a_header_cannot_contain_is_encoded() {
        for (name, header) in [
            ("a b", "a b"),
            ("Grüße", "=?base64?R3LDvMOfZQ==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ] {
            assert_eq!(as_header(name), header, "{name:?}");
        }
    }
}
