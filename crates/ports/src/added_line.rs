//! Lines that are not the agent's. The process that talks to the agent for Tokenrail adds them to the agent's output.
//!
//! Each is a JSON object that begins with [`AddedLine::PREFIX`]. The process that writes them ensures that no line of
//! the agent begins in this way: it inserts a space before such a line, which has no meaning in JSON.

mod accepted;
mod iso_time;
mod resolution;

use std::borrow::Cow;

use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use tokenrail_domain::{Accepts, ErrorClass, Timestamp};

use accepted::AcceptsFields;
pub use resolution::Resolution;

/// A line that Tokenrail adds to the agent's output: for the processes that write such lines and the parsers that read
/// them.
///
/// Spools and journals keep these lines. A field may be added, but no field may change its name or its position.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "tokenrail", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum AddedLine {
    /// Tokenrail sent a request to the agent. The agent's response has the same id.
    Sent { id: u64, method: Cow<'static, str> },
    /// The agent requests a permission.
    // Serde cannot deserialize a tagged enum that contains a `RawValue`.
    #[serde(skip_deserializing)]
    PermissionRequest(PermissionRequestLine),
    /// The permission request is no longer open.
    PermissionResolved(Resolution),
    /// The turn has ended, and the process is idle until the next turn. As bytes: [`AddedLine::IDLE`].
    #[serde(rename = "rests")]
    Idle {},
    /// Tokenrail asked the agent for the next turn.
    Further { turn: u64 },
    /// The name of the agent that runs the next turn. The agent printed it in an earlier turn, and the lines of that
    /// turn are not read again. Spools of earlier releases lack this line.
    Agent { name: String },
    /// Tokenrail asked the agent to end its turn. What the agent prints after this line may have been cut.
    Cancel {},
    /// The agent lost its session and starts a new one.
    SessionLost {
        session_id: String,
        /// Why it cannot resume the session.
        text: String,
    },
    /// The turn cannot continue.
    Error(FailureLine),
    /// The response of a model API ended: at its declared length, or with its connection.
    End {},
}

/// A permission request.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PermissionRequestLine {
    pub request_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    pub tool_name: String,
    /// The input of the tool call: any JSON.
    pub input: Box<RawValue>,
    pub options: Vec<Choosable>,
    /// When the agent asked. Spools of earlier releases lack this field and those after it.
    #[serde(with = "iso_time", skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<Timestamp>,
    /// When the request times out, if nobody has answered.
    #[serde(with = "iso_time", skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The option that is chosen at the timeout. `None`: no option is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_option_id: Option<String>,
    /// What the request accepts besides one option. Absent if nothing.
    #[serde(with = "AcceptsFields", skip_serializing_if = "Accepts::is_plain")]
    pub accepts: Accepts,
}

/// One of the answers to a permission request.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Choosable {
    pub option_id: String,
    /// The label that a user reads.
    pub name: String,
    pub kind: OptionKind,
}

impl Choosable {
    pub fn new(id: &str, name: &str, kind: OptionKind) -> Self {
        Self { option_id: id.to_owned(), name: name.to_owned(), kind }
    }
}

/// What an answer means, as in the Agent Client Protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OptionKind {
    AllowOnce,
    AllowAlways,
    #[default]
    RejectOnce,
    RejectAlways,
}

impl OptionKind {
    /// Its name in the line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AllowOnce => "allow_once",
            Self::AllowAlways => "allow_always",
            Self::RejectOnce => "reject_once",
            Self::RejectAlways => "reject_always",
        }
    }
}

/// Who resolved a permission request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResolvedBy {
    User,
    /// There was no answer in time, or too many requests were open.
    Timeout,
    /// The turn was cancelled.
    Cancel,
    /// The agent withdrew the request.
    Agent,
}

/// Why a turn cannot continue.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FailureLine {
    #[serde(deserialize_with = "class")]
    pub class: ErrorClass,
    #[serde(default)]
    pub code: Option<Cow<'static, str>>,
    pub text: String,
    /// The HTTP status, if a model API refused the request.
    #[serde(default)]
    pub status: Option<u16>,
    #[serde(default)]
    pub retry_after_ms: Option<u64>,
    /// The body of the model API's response.
    #[serde(default)]
    pub body: Option<String>,
    /// Whether `tokenrail model` wrote the failure. It is then the last line.
    #[serde(default, rename = "final")]
    pub is_final: bool,
}

impl FailureLine {
    pub fn new(class: ErrorClass, code: &'static str, text: String) -> Self {
        let code = Some(Cow::Borrowed(code));
        Self { class, code, text, status: None, retry_after_ms: None, body: None, is_final: false }
    }
}

impl Serialize for FailureLine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { class, code, text, status, retry_after_ms, body, is_final } = self;
        let mut fields = serializer.serialize_struct("FailureLine", 7)?;
        // The text comes first or last. The order means nothing, but journals keep these lines byte for byte.
        if *is_final {
            fields.serialize_field("text", text)?;
        }
        fields.serialize_field("class", class.as_str())?;
        if let Some(code) = code {
            fields.serialize_field("code", code)?;
        }
        if !is_final {
            fields.serialize_field("text", text)?;
        }
        if let Some(status) = status {
            fields.serialize_field("status", status)?;
        }
        if let Some(retry_after_ms) = retry_after_ms {
            fields.serialize_field("retryAfterMs", retry_after_ms)?;
        }
        if let Some(body) = body {
            fields.serialize_field("body", body)?;
        }
        if *is_final {
            fields.serialize_field("final", is_final)?;
        }
        fields.end()
    }
}

impl AddedLine {
    /// The beginning of each of these lines. No line of an agent begins with it.
    pub const PREFIX: &str = "{\"tokenrail\":\"";
    /// [`AddedLine::Idle`] as bytes.
    pub const IDLE: &[u8] = b"{\"tokenrail\":\"rests\"}";

    /// Reads a line without its line end. `None` if it is not one of these lines, or is malformed.
    pub fn read(line: &str) -> Option<Self> {
        let kind = line.strip_prefix(Self::PREFIX)?;
        if kind.starts_with("permission_request\"") {
            return serde_json::from_str(line).map(Self::PermissionRequest).ok();
        }
        serde_json::from_str(line).ok()
    }
}

/// Reads a class. A later release may have written a class that this one does not know.
fn class<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ErrorClass, D::Error> {
    let name = Cow::<'de, str>::deserialize(deserializer)?;
    Ok(ErrorClass::from_name(&name).unwrap_or(ErrorClass::Unknown))
}

#[cfg(test)]
mod tests {
    use tokenrail_domain::PermissionReply;

    use super::*;

    #[test]
    fn what_is_written_is_what_is_read() {
        let failure = FailureLine::new(ErrorClass::Process, "no_answer", "it hangs".to_owned());
        let refused = FailureLine {
            status: Some(429),
            retry_after_ms: Some(5),
            body: Some("later".to_owned()),
            is_final: true,
            ..FailureLine::new(ErrorClass::RateLimit, "upstream_refused", "no".to_owned())
        };
        let request = PermissionRequestLine {
            request_id: "1-1".to_owned(),
            tool_call_id: Some("t".to_owned()),
            tool_name: "Write".to_owned(),
            input: RawValue::from_string(r#"{"a": "\ud83d"}"#.to_owned()).unwrap(),
            options: vec![Choosable::new("y", "Yes", OptionKind::AllowOnce)],
            asked_at: Some(Timestamp(1_795_299_000_000)),
            expires_at: Some(Timestamp(1_795_299_600_014)),
            default_option_id: Some("n".to_owned()),
            accepts: Accepts { note: true, text: false, several: true },
        };
        let older = PermissionRequestLine {
            asked_at: None,
            expires_at: None,
            default_option_id: None,
            accepts: Accepts::default(),
            ..request.clone()
        };
        for (line, written) in [
            (AddedLine::Sent { id: 1, method: "a/b".into() }, r#""sent","id":1,"method":"a/b"}"#),
            (
                AddedLine::PermissionRequest(request),
                r#""permission_request","requestId":"1-1","toolCallId":"t","toolName":"Write","input":{"a": "\ud83d"},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"}],"askedAt":"2026-11-21T22:10:00.000Z","expiresAt":"2026-11-21T22:20:00.014Z","defaultOptionId":"n","accepts":{"note":true,"several":true}}"#,
            ),
            (
                AddedLine::PermissionRequest(older),
                r#""permission_request","requestId":"1-1","toolCallId":"t","toolName":"Write","input":{"a": "\ud83d"},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"}]}"#,
            ),
            (AddedLine::Idle {}, r#""rests"}"#),
            (AddedLine::Further { turn: 4 }, r#""further","turn":4}"#),
            (AddedLine::Agent { name: "x".to_owned() }, r#""agent","name":"x"}"#),
            (AddedLine::Cancel {}, r#""cancel"}"#),
            (
                AddedLine::SessionLost { session_id: "s".to_owned(), text: "gone".to_owned() },
                r#""session_lost","sessionId":"s","text":"gone"}"#,
            ),
            (AddedLine::Error(failure), r#""error","class":"process","code":"no_answer","text":"it hangs"}"#),
            (
                AddedLine::Error(refused),
                r#""error","text":"no","class":"rate_limit","code":"upstream_refused","status":429,"retryAfterMs":5,"body":"later","final":true}"#,
            ),
            (AddedLine::End {}, r#""end"}"#),
        ] {
            let written = format!("{{\"tokenrail\":{written}");
            assert_eq!(serde_json::to_string(&line).unwrap(), written);
            let read = AddedLine::read(&written).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), written);
        }
        assert_eq!(serde_json::to_vec(&AddedLine::Idle {}).unwrap(), AddedLine::IDLE);
    }

    #[test]
    fn the_whole_answer_to_a_request_is_in_its_line() {
        let resolved = |options: &[&str], text: Option<&str>, note: Option<&str>| {
            let reply = PermissionReply {
                options: options.iter().map(|option| (*option).to_owned()).collect(),
                text: text.map(str::to_owned),
                note: note.map(str::to_owned),
            };
            let resolution = Resolution::new("1-1".to_owned(), reply.clone(), ResolvedBy::User);
            assert_eq!(resolution.reply(), reply);
            AddedLine::PermissionResolved(resolution)
        };
        for (line, written) in [
            (
                resolved(&["y"], None, None),
                r#""permission_resolved","requestId":"1-1","optionId":"y","by":"user"}"#,
            ),
            (resolved(&[], None, None), r#""permission_resolved","requestId":"1-1","by":"user"}"#),
            (
                resolved(&["a", "b"], Some("c"), None),
                r#""permission_resolved","requestId":"1-1","optionId":"a","by":"user","optionIds":["a","b"],"text":"c"}"#,
            ),
            (
                resolved(&["n"], None, Some("why")),
                r#""permission_resolved","requestId":"1-1","optionId":"n","by":"user","note":"why"}"#,
            ),
        ] {
            let written = format!("{{\"tokenrail\":{written}");
            assert_eq!(serde_json::to_string(&line).unwrap(), written);
            let AddedLine::PermissionResolved(read) = AddedLine::read(&written).unwrap() else { panic!() };
            assert_eq!(serde_json::to_string(&AddedLine::PermissionResolved(read)).unwrap(), written);
        }
    }

    #[test]
    fn what_is_no_line_of_ours_or_makes_no_sense_is_not_read() {
        for line in ["", "{}", r#" {"tokenrail":"end"}"#, r#"{"tokenrail":"else"}"#, r#"{"tokenrail":"sent""#]
        {
            assert!(AddedLine::read(line).is_none(), "{line}");
        }
    }
}
