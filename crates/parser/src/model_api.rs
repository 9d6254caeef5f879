//! The streams of model APIs, as printed by `tokenrail model`: one line for each event, and lines that `tokenrail
//! model` adds.
//!
//! The three APIs report the same in different words: one answer, in parts that arrive in pieces, its token usage and
//! why it ended. One process sends one request, so it prints one turn.
//!
//! | line | what is emitted |
//! | --- | --- |
//! | added `error` | an error, and [`Said::Close`] with it |
//! | added `end`, if the API has not sent its whole answer | error `upstream_dropped`, and [`Said::Close`] with it |
//! | added line of any other kind | nothing |
//! | anything after the end of the turn | nothing |
//! | anything that is not a JSON object | error `line_invalid` |
//!
//! An answer that is cut stays open and is closed together with the turn. The events of each API are documented in
//! [`anthropic`], [`openai_chat`] and [`openai_responses`].

mod answer;
mod anthropic;
mod failure;
mod openai_chat;
mod openai_responses;

use tokenrail_domain::{AgentError, Said};
use tokenrail_ports::{Activity, AddedLine, FailureLine, IMessageParser};

use self::answer::Answer;
use self::anthropic::Anthropic;
use self::openai_chat::OpenAiChat;
use self::openai_responses::OpenAiResponses;
use crate::errors::agent_error;
use crate::line;

/// The end marker of some APIs' streams, sent in place of an event.
const DONE: &str = "[DONE]";

/// Parses the output of one process of `tokenrail model`. Create a new parser for each process.
///
/// The tables at the top of the source files show what each line becomes.
pub struct ModelApiParser {
    api: Box<dyn ApiFormat>,
    answer: Answer,
}

/// One API: how it expresses what all APIs report.
trait ApiFormat: Send {
    /// Handles one event.
    fn event(&mut self, event: &str, answer: &mut Answer, said: &mut Vec<Said>);
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

    fn of(api: impl ApiFormat + 'static) -> Self {
        Self { api: Box::new(api), answer: Answer::default() }
    }
}

impl IMessageParser for ModelApiParser {
    fn parse(&mut self, line: &[u8], said: &mut Vec<Said>) {
        if self.answer.is_over() {
            return;
        }
        let text = line::text(line);
        // Events of the API are printed with a leading space, so they never match this prefix.
        if text.starts_with(AddedLine::PREFIX) {
            return self.added(&text, said);
        }
        match line::trimmed(&text) {
            "" => {}
            DONE => self.answer.stream_done(said),
            event => self.api.event(event, &mut self.answer, said),
        }
    }

    fn activity(&self) -> Activity {
        // Tools of an API are run by other programs, or not at all.
        Activity::default()
    }
}

impl ModelApiParser {
    fn added(&mut self, line: &str, said: &mut Vec<Said>) {
        match AddedLine::read(line) {
            Some(AddedLine::Error(FailureLine { class, code, text, retry_after_ms, body, .. })) => {
                let text = match failure::message_in(body.as_deref()) {
                    Some(message) => format!("{text}: {message}"),
                    None => text,
                };
                let error = agent_error(class, code.as_deref(), text);
                self.answer.fail(AgentError { retry_after_ms, ..error }, said);
            }
            Some(AddedLine::End {}) => self.answer.stream_ended(said),
            _ => {}
        }
    }
}
