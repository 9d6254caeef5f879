//! A permission request: the agent asks whether it may do something, and waits.

use std::fmt;

use crate::{JsonText, Timestamp};

/// A permission request of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionRequest {
    /// Unique among all requests of the agent.
    pub id: String,
    /// The id of the tool call that the request is about.
    pub call: Option<String>,
    pub tool: String,
    /// The input of the tool call, unchanged from the agent: any JSON.
    pub input: JsonText,
    /// The answers that the request accepts.
    pub options: Vec<PermissionOption>,
    /// What it accepts besides one option.
    pub accepts: Accepts,
    /// When the agent asked. `None` if it did not say so.
    pub asked_at: Option<Timestamp>,
    /// When the request is settled without an answer. `None` if never, or unknown.
    pub expires_at: Option<Timestamp>,
    /// The option that is chosen then. `None` if none is.
    pub default_option: Option<String>,
}

/// One of the answers to a permission request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionOption {
    pub id: String,
    /// The label that a user reads.
    pub name: String,
    /// `allow_once`, `allow_always`, `reject_once` or `reject_always`.
    pub kind: &'static str,
}

/// What a permission request accepts besides one of its options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Accepts {
    /// A note to the agent, with an option that rejects.
    pub note: bool,
    /// A text in the user's own words, in place of an option.
    pub text: bool,
    /// Several options of the kind `allow_once`.
    pub several: bool,
}

impl Accepts {
    /// Whether the request accepts only one option.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

/// What a user replies to a permission request. Empty if the user chooses nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PermissionReply {
    /// The ids of the chosen options.
    pub options: Vec<String>,
    /// An answer in the user's own words.
    pub text: Option<String>,
    /// Why the user rejects, for the agent.
    pub note: Option<String>,
}

impl PermissionReply {
    /// The reply that consists of this option, or of none.
    pub fn of(option: Option<String>) -> Self {
        Self { options: option.into_iter().collect(), text: None, note: None }
    }

    /// The reply with the chosen options as lines and messages contain them: the first one, and all of them if there
    /// are several. A reader of an earlier release knows only the first one.
    pub fn from_parts(
        option: Option<String>,
        options: Option<Vec<String>>,
        text: Option<String>,
        note: Option<String>,
    ) -> Self {
        let options = options.unwrap_or_else(|| option.into_iter().collect());
        Self { options, text, note }
    }

    /// The only chosen option, or the first one.
    pub fn first_option(&self) -> Option<&str> {
        self.options.first().map(String::as_str)
    }

    /// All chosen options, if there are several.
    pub fn several_options(&self) -> Option<&[String]> {
        (1 < self.options.len()).then_some(&*self.options)
    }

    /// Why a permission request does not accept this reply. `None` if it does. `kind_of` returns the kind of an option
    /// that the request offers.
    pub fn fault(
        &self,
        accepts: Accepts,
        kind_of: impl Fn(&str) -> Option<&'static str>,
    ) -> Option<ReplyFault> {
        let kinds: Option<Vec<_>> = self.options.iter().map(|option| kind_of(option)).collect();
        let Some(kinds) = kinds else { return Some(ReplyFault::UnknownOption) };
        let parts = kinds.len() + usize::from(self.text.is_some());
        if self.note.is_some() {
            let rejects =
                parts == 1 && kinds.iter().all(|kind| kind.starts_with("reject_")) && self.text.is_none();
            return match (accepts.note, rejects) {
                (false, _) => Some(ReplyFault::NoNote),
                (true, false) => Some(ReplyFault::NoteWithoutRejection),
                (true, true) => None,
            };
        }
        if self.text.is_some() && !accepts.text {
            return Some(ReplyFault::NoText);
        }
        if parts <= 1 {
            return None;
        }
        if !accepts.several {
            return Some(ReplyFault::NotSeveral);
        }
        kinds.iter().any(|kind| *kind != "allow_once").then_some(ReplyFault::Unmixable)
    }
}

/// Why a permission request does not accept a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyFault {
    /// The request has no such option.
    UnknownOption,
    /// It accepts only one answer.
    NotSeveral,
    /// Only options of the kind `allow_once` can be combined.
    Unmixable,
    NoText,
    NoNote,
    /// A note needs an option that rejects, and nothing else.
    NoteWithoutRejection,
}

impl fmt::Display for ReplyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownOption => "not an option of this permission request; choose one of its options",
            Self::NotSeveral => "this permission request accepts only one answer; send one of its options",
            Self::Unmixable => {
                "only options of the kind allow_once can be combined with other options or with text; choose another \
                 option, or send this one alone"
            }
            Self::NoText => "this permission request accepts no text; send one of its options",
            Self::NoNote => {
                "this permission request accepts no note; answer without it, and send the agent a message instead"
            }
            Self::NoteWithoutRejection => {
                "a note needs exactly one option, of a kind that rejects; choose such an option, or leave out the note"
            }
        })
    }
}

impl std::error::Error for ReplyFault {}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(
        accepts: Accepts,
        options: &[&str],
        text: Option<&str>,
        note: Option<&str>,
    ) -> Option<ReplyFault> {
        let reply = PermissionReply {
            options: options.iter().map(|option| (*option).to_owned()).collect(),
            text: text.map(str::to_owned),
            note: note.map(str::to_owned),
        };
        reply.fault(accepts, |option| match option {
            "a" | "b" => Some("allow_once"),
            "always" => Some("allow_always"),
            "no" => Some("reject_once"),
            _ => None,
        })
    }

    #[test]
    fn one_option_or_none_is_always_accepted() {
        for options in [&["a"][..], &["always"], &["no"], &[]] {
            assert_eq!(fault(Accepts::default(), options, None, None), None, "{options:?}");
        }
        assert_eq!(fault(Accepts::default(), &["x"], None, None), Some(ReplyFault::UnknownOption));
    }

    #[test]
    fn what_a_request_does_not_accept_is_a_fault() {
        let plain = Accepts::default();
        assert_eq!(fault(plain, &["a", "b"], None, None), Some(ReplyFault::NotSeveral));
        assert_eq!(fault(plain, &[], Some("t"), None), Some(ReplyFault::NoText));
        assert_eq!(fault(plain, &["no"], None, Some("n")), Some(ReplyFault::NoNote));
        let text = Accepts { text: true, ..plain };
        assert_eq!(fault(text, &["a"], Some("t"), None), Some(ReplyFault::NotSeveral));
        assert_eq!(fault(text, &[], Some("t"), None), None);
    }

    #[test]
    fn a_note_needs_one_option_that_rejects() {
        let all = Accepts { note: true, text: true, several: true };
        assert_eq!(fault(all, &["no"], None, Some("n")), None);
        for (options, text) in
            [(&["a"][..], None), (&[], None), (&["no", "a"], None), (&["no"], Some("t")), (&[], Some("t"))]
        {
            let wrong = fault(all, options, text, Some("n"));
            assert_eq!(wrong, Some(ReplyFault::NoteWithoutRejection), "{options:?} {text:?}");
        }
    }

    #[test]
    fn only_answers_can_be_combined() {
        let all = Accepts { note: true, text: true, several: true };
        assert_eq!(fault(all, &["a", "b"], Some("t"), None), None);
        for options in [&["a", "no"][..], &["a", "always"]] {
            assert_eq!(fault(all, options, None, None), Some(ReplyFault::Unmixable), "{options:?}");
        }
        assert_eq!(fault(all, &["no"], Some("t"), None), Some(ReplyFault::Unmixable));
    }
}
