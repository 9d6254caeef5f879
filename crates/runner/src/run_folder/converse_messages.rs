//! Messages from the server to the `converse` process: answers to permission requests, and further turns.

use serde::{Deserialize, Serialize};
use tokenrail_domain::PermissionReply;

use super::images::ImageRef;

/// The maximum of `limits.answer_text_bytes`.
pub const ANSWER_TEXT_BYTES: usize = 64 << 10;
/// The longest message. JSON may need six bytes for one byte of a text, and the rest is short.
pub(crate) const MESSAGE_BYTES: usize = 8 * ANSWER_TEXT_BYTES;

/// An answer to a permission request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Answer {
    request: String,
    /// The chosen option, or the first one of several. `None` if none is chosen.
    option: Option<String>,
    /// All chosen options, if there are several. A process of an earlier release knows only the fields before this
    /// one, and sends no requests that accept the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    options: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

impl Answer {
    pub(crate) fn new(request: String, reply: PermissionReply) -> Self {
        let option = reply.first_option().map(str::to_owned);
        let options = reply.several_options().map(<[String]>::to_vec);
        let PermissionReply { options: _, text, note } = reply;
        Self { request, option, options, text, note }
    }

    /// The id of the permission request, and the reply to it.
    pub(crate) fn into_parts(self) -> (String, PermissionReply) {
        let Self { request, option, options, text, note } = self;
        (request, PermissionReply::from_parts(option, options, text, note))
    }
}

/// A further run in the process of an earlier one: the content of `further.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FurtherRun {
    /// The number of the run: that of the turn that it was started for.
    #[serde(rename = "turn")]
    pub(crate) run: u64,
    pub(crate) prompt: String,
    /// The images of the prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) images: Vec<ImageRef>,
    /// The offset in the spool at which the earlier run ended. The output of this run begins after it, with the line
    /// `AddedLine::Further`.
    pub(crate) behind: u64,
    /// How many bytes of standard error belong to earlier runs.
    pub(crate) stderr_begins: u64,
}

/// A message through the FIFO `answers` ([`RunFolder::converse_fifo`](super::RunFolder::converse_fifo)): one line of
/// JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum ConverseMessage {
    /// There is a further turn. Its prompt is in `further.json`, because it may be long.
    Further {
        further: u64,
    },
    Answer(Answer),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_told_from_a_further_turn() {
        let answer: ConverseMessage = serde_json::from_str(r#"{"request":"3-1","option":null}"#).unwrap();
        assert!(matches!(answer, ConverseMessage::Answer(_)));
        let reply = PermissionReply {
            options: vec!["a".to_owned(), "b".to_owned()],
            text: Some("c".to_owned()),
            note: None,
        };
        let answer = Answer::new("3-1".to_owned(), reply.clone());
        let written = serde_json::to_string(&ConverseMessage::Answer(answer)).unwrap();
        assert_eq!(written, r#"{"request":"3-1","option":"a","options":["a","b"],"text":"c"}"#);
        let ConverseMessage::Answer(answer) = serde_json::from_str(&written).unwrap() else { panic!() };
        assert_eq!(answer.into_parts(), ("3-1".to_owned(), reply));
        let further: ConverseMessage = serde_json::from_str(r#"{"further":4}"#).unwrap();
        assert!(matches!(further, ConverseMessage::Further { further: 4 }));
    }

    /// A process of an earlier release may read what this release writes, and the other way round.
    #[test]
    fn a_further_run_is_written_with_the_names_of_earlier_releases() {
        let further =
            FurtherRun { run: 4, prompt: "a".to_owned(), images: Vec::new(), behind: 7, stderr_begins: 1 };
        let written = serde_json::to_string(&further).unwrap();
        assert_eq!(written, r#"{"turn":4,"prompt":"a","behind":7,"stderr_begins":1}"#);
    }
}
