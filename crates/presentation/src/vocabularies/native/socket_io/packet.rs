//! Socket.IO packets, protocol 5. Only the default namespace is served.

use serde_json::value::RawValue;

/// The types of packets of the server, with the type of the Engine.IO packet around them.
pub(super) const CONNECTED: &[u8] = b"40";
pub(super) const NOT_CONNECTED: &str = "44";
pub(super) const ACK: &str = "43";

/// The default namespace.
pub(super) const ROOT: &str = "/";

/// Maximum length of a namespace, in bytes.
const NAMESPACE_BYTES: usize = 64;

/// A packet from a client.
#[derive(Debug)]
pub(super) struct Packet<'a> {
    pub(super) namespace: &'a str,
    pub(super) content: Content<'a>,
}

#[derive(Debug)]
pub(super) enum Content<'a> {
    /// The client joins the namespace, with its credentials.
    Connect(Option<&'a str>),
    Disconnect,
    Event {
        ack: Option<u64>,
        name: String,
        value: Option<&'a str>,
    },
    /// The server asks for no acknowledgements, so this is ignored.
    Ack,
    /// An event or an acknowledgement with binary attachments.
    Binary,
}

/// Text that is no packet of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NoPacket;

impl<'a> Packet<'a> {
    pub(super) fn read(text: &'a str) -> Result<Self, NoPacket> {
        let (kind, rest) = text.split_at_checked(1).ok_or(NoPacket)?;
        if matches!(kind, "5" | "6") {
            return Ok(Self { namespace: ROOT, content: Content::Binary });
        }
        let (namespace, rest) = namespace(rest)?;
        let content = match kind {
            "0" => Content::Connect(object(rest)?),
            "1" if rest.is_empty() => Content::Disconnect,
            "2" => event(rest)?,
            "3" => Content::Ack,
            _ => return Err(NoPacket),
        };
        Ok(Self { namespace, content })
    }
}

/// The namespace at the beginning, and what follows it. Other namespaces than the default one end with a comma.
fn namespace(text: &str) -> Result<(&str, &str), NoPacket> {
    if !text.starts_with('/') {
        return Ok((ROOT, text));
    }
    let (namespace, rest) = text.split_once(',').unwrap_or((text, ""));
    // Clients append a query, which says nothing to this server.
    let name = namespace.split('?').next().unwrap_or_default();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.:".contains(&byte);
    if NAMESPACE_BYTES < name.len() || !name.bytes().all(is_name) {
        return Err(NoPacket);
    }
    Ok((name, rest))
}

/// An object, which is optional.
fn object(text: &str) -> Result<Option<&str>, NoPacket> {
    if text.is_empty() {
        return Ok(None);
    }
    let value: &RawValue = serde_json::from_str(text).map_err(|_| NoPacket)?;
    if value.get().starts_with('{') { Ok(Some(value.get())) } else { Err(NoPacket) }
}

/// An event: perhaps the number of its acknowledgement, and a list of its name and its values. Only the first value
/// means anything here.
fn event(text: &str) -> Result<Content<'_>, NoPacket> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (ack, list) = text.split_at(digits);
    let ack = if ack.is_empty() { None } else { Some(ack.parse().map_err(|_| NoPacket)?) };
    let list: Vec<&RawValue> = serde_json::from_str(list).map_err(|_| NoPacket)?;
    let name = list.first().ok_or(NoPacket)?;
    let name = serde_json::from_str(name.get()).map_err(|_| NoPacket)?;
    Ok(Content::Event { ack, name, value: list.get(1).map(|value| value.get()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(text: &str) -> String {
        match Packet::read(text) {
            Ok(Packet { namespace, content }) => format!("{namespace} {content:?}"),
            Err(NoPacket) => "none".to_owned(),
        }
    }

    #[test]
    fn packets_of_a_client() {
        for (text, expected) in [
            ("0", "/ Connect(None)"),
            (r#"0{"token":"x"}"#, r#"/ Connect(Some("{\"token\":\"x\"}"))"#),
            (r#"0/admin,{"a":1}"#, r#"/admin Connect(Some("{\"a\":1}"))"#),
            ("0/admin", "/admin Connect(None)"),
            ("0/admin?a=b,", "/admin Connect(None)"),
            ("1", "/ Disconnect"),
            ("1/admin,", "/admin Disconnect"),
            (r#"2["a"]"#, r#"/ Event { ack: None, name: "a", value: None }"#),
            (r#"2["a",{"b":[1]},2]"#, r#"/ Event { ack: None, name: "a", value: Some("{\"b\":[1]}") }"#),
            (r#"212["a",7]"#, r#"/ Event { ack: Some(12), name: "a", value: Some("7") }"#),
            (r#"2/admin,0["a"]"#, r#"/admin Event { ack: Some(0), name: "a", value: None }"#),
            ("30[]", "/ Ack"),
            (r#"51-["a",{"_placeholder":true,"num":0}]"#, "/ Binary"),
            ("61-0[]", "/ Binary"),
        ] {
            assert_eq!(seen(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_packet() {
        let long = format!("0/{}", "a".repeat(NAMESPACE_BYTES));
        for text in [
            "",
            "7",
            "x",
            "0[]",
            "0x",
            "0{",
            "1x",
            "2",
            "2[]",
            "2{}",
            "2[7]",
            r#"2["a""#,
            r#"2["a"]x"#,
            r#"299999999999999999999["a"]"#,
            r#"2["\ud83e"]"#,
            "0/a\"b",
            "0/🦀",
            "4{}",
            &long,
        ] {
            assert_eq!(seen(text), "none", "{text}");
        }
    }
}
