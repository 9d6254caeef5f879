//! Lines that are not the agent's: whoever speaks with it for Tokenrail adds them to its output.
//!
//! | line | what is said |
//! | --- | --- |
//! | `{"tokenrail":"permission_request","requestId",…,"options":[{"optionId",…}]}` | notice, and [`Said::Asked`] |
//! | `{"tokenrail":"permission_resolved","requestId","optionId"?,"by"}` | notice, and [`Said::Settled`] |
//! | `{"tokenrail":"error","class","code","text"}` | nothing: it is [`OwnLine::Failed`], and the parser ends the turn |
//! | `{"tokenrail":"sent","id","method"}` | nothing: it is [`OwnLine::Sent`] |
//! | `{"tokenrail":"session_lost","sessionId","text"}` | notice |
//! | `{"tokenrail":"rests"}` | nothing: the turn has ended, and the process waits for another one |
//! | `{"tokenrail":"further","turn"}` | nothing: it is asked for that |
//! | `{"tokenrail":"cancel"}` | nothing: it is [`OwnLine::Cancel`] |
//! | `{"tokenrail":"agent","name"}` | nothing: it is [`OwnLine::Agent`]. Spools of earlier releases lack it |

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokenrail_domain::{AgentError, ErrorClass, EventBody, JsonText, Notice, Said};

use crate::fields::{self, Raw};
use crate::{errors, line};

/// How each of them begins, and no line of an agent.
pub(crate) const PREFIX: &str = "{\"tokenrail\":\"";

/// The agent has forgotten its session, and begins another one: the notice's name.
const SESSION_LOST: &str = "session_lost";

/// Reads the lines that are not the agent's, and knows which of its questions are open.
#[derive(Debug, Default)]
pub(crate) struct OwnLines {
    open: BTreeSet<String>,
}

/// What a line turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OwnLine {
    /// It has said what it has to say.
    Said,
    /// The agent was sent a request with this id.
    Sent { id: u64, method: String },
    /// Which agent takes a further turn.
    Agent { name: String },
    /// The agent was asked to end its turn.
    Cancel,
    /// The turn cannot go on.
    Failed(AgentError),
    /// It is a line of the agent.
    Foreign,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fields<'a> {
    #[serde(borrow)]
    tokenrail: Raw<'a>,
    #[serde(borrow)]
    request_id: Raw<'a>,
    #[serde(borrow)]
    option_id: Raw<'a>,
    #[serde(borrow)]
    options: Raw<'a>,
    #[serde(borrow)]
    id: Raw<'a>,
    #[serde(borrow)]
    method: Raw<'a>,
    #[serde(borrow)]
    name: Raw<'a>,
    #[serde(borrow)]
    class: Raw<'a>,
    #[serde(borrow)]
    code: Raw<'a>,
    #[serde(borrow)]
    text: Raw<'a>,
}

impl OwnLines {
    pub(crate) fn read(&mut self, bytes: &[u8], said: &mut Vec<Said>) -> OwnLine {
        if !bytes.starts_with(PREFIX.as_bytes()) {
            return OwnLine::Foreign;
        }
        let text = line::text(bytes);
        let text = line::trimmed(&text);
        let Ok(fields) = serde_json::from_str::<Fields<'_>>(text) else { return OwnLine::Foreign };
        let request = fields::text(fields.request_id).map(Cow::into_owned).unwrap_or_default();
        match fields::text(fields.tokenrail).as_deref() {
            Some(kind @ Notice::PERMISSION_REQUEST) => {
                self.open.insert(request.clone());
                said.push(told(kind, text));
                said.push(Said::Asked { question: request, options: option_ids(fields.options) });
            }
            Some(kind @ Notice::PERMISSION_RESOLVED) => {
                self.open.remove(&request);
                said.push(told(kind, text));
                let option = fields::text(fields.option_id).map(Cow::into_owned);
                said.push(Said::Settled { question: request, option });
            }
            Some(kind @ SESSION_LOST) => said.push(told(kind, text)),
            Some("rests" | "further") => {}
            Some("sent") => {
                let method = fields::text(fields.method).map(Cow::into_owned).unwrap_or_default();
                return OwnLine::Sent { id: fields::number(fields.id).unwrap_or_default(), method };
            }
            Some("agent") => {
                let name = fields::text(fields.name).map(Cow::into_owned).unwrap_or_default();
                return OwnLine::Agent { name };
            }
            Some("cancel") => return OwnLine::Cancel,
            Some("error") => {
                let class = fields::text(fields.class);
                let class =
                    class.and_then(|class| ErrorClass::from_name(&class)).unwrap_or(ErrorClass::Unknown);
                let text = fields::text(fields.text).map(Cow::into_owned).unwrap_or_default();
                return OwnLine::Failed(errors::agent_error(
                    class,
                    fields::text(fields.code).as_deref(),
                    text,
                ));
            }
            _ => return OwnLine::Foreign,
        }
        OwnLine::Said
    }

    /// Whether the agent waits for an answer.
    pub(crate) fn is_asked(&self) -> bool {
        !self.open.is_empty()
    }
}

/// The line's object without its first field, which is the name of the event.
fn told(kind: &str, text: &str) -> Said {
    let rest = text.get(PREFIX.len()..).and_then(|rest| rest.strip_prefix(kind)?.strip_prefix("\","));
    let data = rest.map_or_else(|| "{}".to_owned(), |rest| format!("{{{rest}"));
    let notice = Notice { subtype: kind.to_owned(), data: JsonText::new_unchecked(data) };
    Said::Event(EventBody::Notice(Box::new(notice)))
}

fn option_ids(options: Raw<'_>) -> Vec<String> {
    let ids = fields::elements(options).into_iter().map(|option: &RawValue| {
        let option: Fields<'_> = fields::read(Some(option));
        fields::text(option.option_id).map(Cow::into_owned)
    });
    ids.flatten().collect()
}
