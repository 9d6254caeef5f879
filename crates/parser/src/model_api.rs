//! The streams of model APIs, as `tokenrail model` prints them: one line for each event, and lines of its own.
//!
//! The three APIs say the same in other words: one answer, in parts that come in pieces, what it has cost and why it
//! ended. One process asks once, so it prints one turn.
//!
//! | line | what is said |
//! | --- | --- |
//! | own `error` | an error, and [`Said::Close`] with it |
//! | own `end`, where the API has not said that its answer is whole | error `upstream_dropped`, and [`Said::Close`] with it |
//! | own of any other kind | nothing |
//! | anything after the end of the turn | nothing |
//! | anything that is no JSON object | error `line_invalid` |
//!
//! An answer that breaks off is left open: whoever ends the turn ends it too. What each API's events say is told at
//! the top of [`anthropic`], [`openai_chat`] and [`openai_responses`].

mod answer;
mod anthropic;
mod failure;
mod openai_chat;
mod openai_responses;

use serde::Deserialize;
use tokenrail_domain::{ErrorClass, Said};
use tokenrail_ports::{Activity, IMessageParser};

use self::answer::Answer;
use self::anthropic::Anthropic;
use self::openai_chat::OpenAiChat;
use self::openai_responses::OpenAiResponses;
use crate::errors::agent_error;
use crate::fields::{self, Raw};
use crate::{line, own_lines};

/// What some APIs end their streams with, in place of an event.
const DONE: &str = "[DONE]";

/// Reads what one process of `tokenrail model` prints: make a new one for each process.
///
/// The tables at the top of its source files say what becomes of each line.
pub struct ModelApiParser {
    api: Box<dyn Api>,
    answer: Answer,
}

/// How one API says what all of them say.
trait Api: Send {
    /// Reads one event.
    fn event(&mut self, event: &str, answer: &mut Answer, said: &mut Vec<Said>);
}

/// A line of the process's own.
#[derive(Deserialize, Default)]
struct OwnLine<'a> {
    #[serde(borrow)]
    tokenrail: Raw<'a>,
    #[serde(borrow)]
    text: Raw<'a>,
    #[serde(borrow)]
    class: Raw<'a>,
    #[serde(borrow)]
    code: Raw<'a>,
    #[serde(borrow, rename = "retryAfterMs")]
    retry_after_ms: Raw<'a>,
    #[serde(borrow)]
    body: Raw<'a>,
}

impl ModelApiParser {
    /// The Messages API of Anthropic.
    pub fn anthropic() -> Self {
        Self::of(Anthropic)
    }

    /// The Chat Completions API of `OpenAI`, and of many other servers.
    pub fn openai_chat() -> Self {
        Self::of(OpenAiChat::default())
    }

    /// The Responses API of `OpenAI`.
    pub fn openai_responses() -> Self {
        Self::of(OpenAiResponses::default())
    }

    fn of(api: impl Api + 'static) -> Self {
        Self { api: Box::new(api), answer: Answer::default() }
    }
}

impl IMessageParser for ModelApiParser {
    fn parse(&mut self, line: &[u8], said: &mut Vec<Said>) {
        if self.answer.is_over() {
            return;
        }
        let text = line::text(line);
        // Whatever an API sends is printed with a blank before that.
        if text.starts_with(own_lines::PREFIX) {
            return self.own(&text, said);
        }
        match line::trimmed(&text) {
            "" => {}
            DONE => self.answer.stream_done(said),
            event => self.api.event(event, &mut self.answer, said),
        }
    }

    fn activity(&self) -> Activity {
        // The tools of an API are run by others, or not at all.
        Activity::default()
    }
}

impl ModelApiParser {
    fn own(&mut self, line: &str, said: &mut Vec<Said>) {
        let own: OwnLine<'_> = fields::reread(line);
        match fields::text(own.tokenrail).as_deref() {
            Some("error") => {
                let class = fields::text(own.class).and_then(|class| ErrorClass::from_name(&class));
                let text = fields::text(own.text).unwrap_or_default();
                let text = match failure::message_in(fields::text(own.body).as_deref()) {
                    Some(message) => format!("{text}: {message}"),
                    None => text.into_owned(),
                };
                let code = fields::text(own.code);
                let mut error = agent_error(class.unwrap_or(ErrorClass::Unknown), code.as_deref(), text);
                error.retry_after_ms = fields::number(own.retry_after_ms);
                self.answer.fail(error, said);
            }
            Some("end") => self.answer.stream_ended(said),
            _ => {}
        }
    }
}
