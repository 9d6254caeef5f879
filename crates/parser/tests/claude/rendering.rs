//! The results of a parser as short text.

use std::fmt::Write;

use tokenrail_domain::{
    AgentError, CompleteMessage, ContentBlock, EventBody, MessageOrdinal, Part, Said, TurnClose,
};

/// One line of text for each result. Texts are cut to `text_max` characters.
#[derive(Clone, Copy)]
pub(crate) struct Rendering {
    pub(crate) text_max: usize,
}

/// A part of a message, and the kind of its deltas.
type Voice = (MessageOrdinal, Part, &'static str);

impl Rendering {
    /// Renders each result separately.
    pub(crate) fn each(self, said: &[Said]) -> Vec<String> {
        said.iter().map(|said| self.said(said)).collect()
    }

    /// Renders each result with its position. Consecutive deltas of one part are rendered as one.
    pub(crate) fn runs(self, said: &[Said]) -> Vec<(usize, String)> {
        let mut out = Vec::new();
        let mut from = 0;
        while from < said.len() {
            let Some((voice, _)) = delta(&said[from]) else {
                out.push((from, self.said(&said[from])));
                from += 1;
                continue;
            };
            let run = said[from..].iter().map_while(|said| delta(said).filter(|(other, _)| *other == voice));
            let texts: Vec<&str> = run.map(|(_, text)| text).collect();
            let (message, part, verb) = voice;
            let text = self.text(&texts.concat());
            out.push((from, format!("{}.{} {verb} {text} in {}", message.0, part.0, texts.len())));
            from += texts.len();
        }
        out
    }

    fn said(self, said: &Said) -> String {
        match said {
            Said::Event(body) => self.event(body),
            Said::End { message, outcome, rest } => {
                let mut out = format!("{} end {}", message.0, outcome.as_str());
                for (part, block) in rest {
                    write!(out, " +{} {}", part.0, self.block(block)).unwrap();
                }
                out
            }
            Said::Session(session) => format!("session {session}"),
            Said::Close(close) => self.close(close),
            Said::Asked(request) => {
                let options: Vec<_> = request.options.iter().map(|option| option.id.as_str()).collect();
                format!("asks {}: {}", request.id, options.join(", "))
            }
            Said::Settled { request_id, reply } => {
                format!("settled {request_id}: {}", reply.first_option().unwrap_or("by none"))
            }
            Said::OwnTurn => "next turn".to_owned(),
        }
    }

    fn event(self, body: &EventBody) -> String {
        match body {
            EventBody::UserMessage { content, .. } => format!("user {}", self.text(content)),
            EventBody::TextDelta { message, part, text } => {
                format!("{}.{} text {}", message.0, part.0, self.text(text))
            }
            EventBody::ReasoningDelta { message, part, text } => {
                format!("{}.{} thinks {}", message.0, part.0, self.text(text))
            }
            EventBody::ToolInputDelta { message, part, call, tool, fragment } => {
                let tool = tool.as_deref().map(|tool| format!(" of {tool}")).unwrap_or_default();
                format!("{}.{} input {call}{tool} {}", message.0, part.0, self.text(fragment))
            }
            EventBody::Message(message) => self.message(message),
            EventBody::ToolCall(call) => {
                let input = self.cut(call.input.as_str());
                format!("call {} {} {input}{}", call.call, call.tool, of(call.parent_call.as_ref()))
            }
            EventBody::ToolResult(result) => {
                let failed = if result.is_error { " failed" } else { "" };
                let content = self.cut(result.content.as_str());
                let patch =
                    result.patch.as_ref().map(|patch| format!(" patch {}", self.text(patch.as_str())));
                let patch = patch.unwrap_or_default();
                format!("result {}{failed} {content}{}{patch}", result.call, of(result.parent_call.as_ref()))
            }
            EventBody::Usage(usage) => {
                let reason = usage.stop_reason.as_deref().unwrap_or("-");
                format!("usage {reason} {}", self.cut(usage.usage.as_str()))
            }
            EventBody::Notice(notice) => format!("notice {}", notice.subtype),
            EventBody::Abandoned { message } => format!("{} abandoned", message.0),
            EventBody::Error(error) => format!("error {}", self.error(error)),
            EventBody::TurnResult(result) => format!("{result:?}"),
        }
    }

    fn message(self, message: &CompleteMessage) -> String {
        let mut out = format!("{} message {}", message.message.0, message.outcome.as_str());
        for block in &message.blocks {
            write!(out, " + {}", self.block(block)).unwrap();
        }
        out + &of(message.parent_call.as_ref())
    }

    fn block(self, block: &ContentBlock) -> String {
        match block {
            ContentBlock::Text(text) => format!("text {}", self.text(text)),
            ContentBlock::Reasoning(text) => format!("thinks {}", self.text(text)),
            ContentBlock::ToolUse { call, tool, input } => {
                format!("use {call} {tool} {}", self.cut(input.as_str()))
            }
            ContentBlock::Other(json) => format!("other {}", self.cut(json.as_str())),
        }
    }

    fn error(self, error: &AgentError) -> String {
        let code = error.code.as_deref().map(|code| format!(" {code}")).unwrap_or_default();
        let again = if error.recoverable { " recoverable" } else { "" };
        format!("{}{code}{again} {}", error.class.as_str(), self.text(&error.text))
    }

    fn close(self, close: &TurnClose) -> String {
        let TurnClose { error, interrupted, text, num_turns, cost_usd, usage, origin } = close;
        let mut out = format!("close {}", self.text(text));
        if *interrupted {
            out.push_str(" interrupted");
        }
        if let Some(error) = error {
            write!(out, " error {}", self.error(error)).unwrap();
        }
        if let Some(num_turns) = num_turns {
            write!(out, " turns {num_turns}").unwrap();
        }
        if let Some(cost) = cost_usd {
            write!(out, " cost {cost:.4}").unwrap();
        }
        if let Some(usage) = usage {
            write!(out, " usage {}", self.cut(usage.as_str())).unwrap();
        }
        if let Some(origin) = origin {
            write!(out, " origin {origin}").unwrap();
        }
        out
    }

    fn text(self, text: &str) -> String {
        self.cut(&format!("{text:?}"))
    }

    fn cut(self, text: &str) -> String {
        match text.char_indices().nth(self.text_max) {
            Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
            None => text.to_owned(),
        }
    }
}

fn of(parent_call: Option<&String>) -> String {
    parent_call.map(|call| format!(" in {call}")).unwrap_or_default()
}

fn delta(said: &Said) -> Option<(Voice, &str)> {
    let Said::Event(body) = said else { return None };
    match body {
        EventBody::TextDelta { message, part, text } => Some(((*message, *part, "text"), text)),
        EventBody::ReasoningDelta { message, part, text } => Some(((*message, *part, "thinks"), text)),
        EventBody::ToolInputDelta { message, part, fragment, .. } => {
            Some(((*message, *part, "input"), fragment))
        }
        _ => None,
    }
}
