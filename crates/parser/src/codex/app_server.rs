//! Lines of `codex app-server`: notifications, and answers to requests.

use serde_json::value::RawValue;
use tokenrail_domain::{EventBody, JsonText, Said, TurnClose, Usage};

use super::lines::{Entity, Failure, Head, Params, TokenUsage};
use super::{CodexParser, Phase, errors};
use crate::fields::{self, Raw};
use crate::line::notice;
use crate::open_message::{OpenMessage, PartKind};

/// The first part number of the reasoning itself. Its parts follow the parts of its summary.
const CONTENT_PARTS_FROM: u32 = 1 << 16;

impl CodexParser {
    /// Handles an answer to a request.
    pub(super) fn answer(&mut self, head: &Head<'_>, text: &str, said: &mut Vec<Said>) {
        if let Some(error) = head.error {
            return self.refusal(error, text, said);
        }
        let result: Entity<'_> = fields::read(head.result);
        let thread: Entity<'_> = fields::read(result.thread);
        self.conversation.session(fields::text(thread.id), said);
    }

    /// Handles an error in answer to a request. Outside of a turn, the failed request is one that a turn requires.
    fn refusal(&mut self, error: &RawValue, text: &str, said: &mut Vec<Said>) {
        if self.in_turn || self.conversation.is_closed() {
            return said.push(notice("control_error", JsonText::new_unchecked(text)));
        }
        let error = errors::of(&fields::read::<Failure<'_>>(Some(error)));
        self.close(TurnClose { error: Some(error), ..TurnClose::default() }, said);
    }

    pub(super) fn notification(
        &mut self,
        method: &str,
        params: &Params<'_>,
        text: &str,
        said: &mut Vec<Said>,
    ) {
        if self.is_of_other_thread(params.thread_id) {
            return;
        }
        match method {
            "thread/started" => {
                if self.conversation.session_id().is_empty() {
                    let thread: Entity<'_> = fields::read(params.thread);
                    self.conversation.session(fields::text(thread.id), said);
                }
            }
            "turn/started" => {
                self.conversation.begin_turn(said);
                self.in_turn = true;
            }
            "item/started" => self.item(Phase::Started, params.item, said),
            "item/completed" => self.item(Phase::Completed, params.item, said),
            "item/agentMessage/delta" => self.delta(params, 0, PartKind::Text, said),
            "item/reasoning/summaryTextDelta" => {
                let part = fields::number(params.summary_index).unwrap_or(0);
                self.delta(params, part, PartKind::Reasoning, said);
            }
            "item/reasoning/textDelta" => {
                let part: u32 = fields::number(params.content_index).unwrap_or(0);
                self.delta(params, part.saturating_add(CONTENT_PARTS_FROM), PartKind::Reasoning, said);
            }
            "thread/tokenUsage/updated" => self.token_usage(params.token_usage, said),
            "error" => {
                let failure: Failure<'_> = fields::read(params.error);
                self.error(&failure, fields::is_true(params.will_retry), text, said);
            }
            "turn/completed" => self.turn_completed(&fields::read(params.turn), said),
            "turn/plan/updated" => said.push(notice("todo_list", JsonText::new_unchecked(text))),
            "configWarning" | "deprecationNotice" => {
                said.push(notice("warning", JsonText::new_unchecked(text)));
            }
            "thread/status/changed"
            | "turn/diff/updated"
            | "account/rateLimits/updated"
            | "remoteControl/status/changed"
            | "item/reasoning/summaryPartAdded"
            | "item/commandExecution/outputDelta"
            | "item/fileChange/outputDelta" => {}
            _ => said.push(notice(method, JsonText::new_unchecked(text))),
        }
    }

    /// Whether the notification belongs to a thread that the agent started itself. Such threads talk to the agent and
    /// not to the user.
    fn is_of_other_thread(&self, thread: Raw<'_>) -> bool {
        let session = self.conversation.session_id();
        !session.is_empty() && fields::text(thread).is_some_and(|thread| thread != session)
    }

    fn delta(&mut self, params: &Params<'_>, part: u32, piece: PartKind, said: &mut Vec<Said>) {
        let (Some(id), Some(delta)) = (fields::text(params.item_id), params.delta) else { return };
        let open = self.open.entry(id.into_owned()).or_insert_with(|| OpenMessage::new(None));
        open.say(part, piece, delta.get(), &mut self.conversation.emitter(said));
    }

    fn token_usage(&mut self, usage: Raw<'_>, said: &mut Vec<Said>) {
        let TokenUsage { total, last } = fields::read(usage);
        self.usage = fields::object(total);
        if let Some(usage) = fields::object(last) {
            let usage = Usage { stop_reason: None, usage };
            said.push(Said::Event(EventBody::Usage(Box::new(usage))));
        }
    }

    fn turn_completed(&mut self, turn: &Entity<'_>, said: &mut Vec<Said>) {
        let failure: Failure<'_> = fields::read(turn.error);
        match fields::text(turn.status).as_deref() {
            Some("interrupted") => self.fail(&failure, true, said),
            Some("failed") => self.fail(&failure, false, said),
            _ => self.close(TurnClose::default(), said),
        }
    }
}
