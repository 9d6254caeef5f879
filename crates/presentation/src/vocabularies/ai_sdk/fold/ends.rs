//! The end of a turn, and messages that the agent abandons.

use super::{AiSdk, AiSdkFold, CallState, Kind, SdkVersion, Told};
use crate::fold::Frames;
use crate::vocabularies::ai_sdk::dto::{AbandonedDto, Chunk, FinishDto, FinishReason, ForeignJson, UsageDto};
use tokenrail_domain::{JsonText, MessageOrdinal, Part, TurnOutcome, TurnResult, Usage};

/// The error text of a call that has no result when the turn ends.
const NO_RESULT: &str = "the turn ended without a result for this call";

impl AiSdkFold {
    /// The agent discards a message and sends it again. From 7.0.70 on, a client can discard a step, and with it the
    /// newest message, if no tool of the step has a result yet. Otherwise, the client gets a list of the parts to
    /// discard.
    pub(super) fn abandoned(&mut self, message: MessageOrdinal, out: &mut impl Frames<AiSdk>) {
        self.close_words(message, out);
        let Some(spoken) = self.messages.remove(&message) else { return };
        let newest = self.newest == Some(message);
        self.same_step = newest;
        if SdkVersion::V7Reset <= self.version && newest && !self.calls.any_done_in_step() {
            self.close_all_words(out);
            self.calls.reset_step();
            self.approvals.retain(|call| self.calls.state(call).is_some());
            out.frame(&Chunk::ResetStep);
            return;
        }
        for call in spoken.calls() {
            if self.calls.state(call) == Some(CallState::Streaming) {
                let tool = self.calls.tool(call).to_owned();
                self.call_cut((call, &tool), &JsonText::null(), out);
            }
        }
        let parts = spoken.words().map(|part| self.part(message, part)).collect();
        out.frame(&Chunk::Abandoned { data: AbandonedDto { message_id: self.message(message), parts } });
    }

    pub(super) fn usage(&mut self, usage: &Usage, out: &mut impl Frames<AiSdk>) {
        let Usage { stop_reason, usage } = usage;
        if let Some(word) = stop_reason {
            self.stop_reason = Some(finish_reason(word));
        }
        let message_metadata = UsageDto { usage: ForeignJson(usage), stop_reason: stop_reason.as_deref() };
        out.frame(&Chunk::MessageMetadata { message_metadata });
    }

    /// Ends the turn. An `error` is sent after everything is closed, because a client reads nothing after it.
    pub(super) fn ended(&mut self, result: &TurnResult, out: &mut impl Frames<AiSdk>) {
        if result.outcome == TurnOutcome::Completed && self.told != Told::Words {
            // Some agents send their text only with the result.
            let message = self.newest.map_or(MessageOrdinal(0), |newest| MessageOrdinal(newest.0 + 1));
            self.words(message, Part(0), Kind::Text, &result.text, out);
        }
        self.close_all_words(out);
        self.close_calls(out);
        self.end_step(out);
        match result.outcome {
            TurnOutcome::Completed => {}
            TurnOutcome::Cancelled => {
                let reason = (SdkVersion::V7 <= self.version).then_some("cancelled");
                out.frame(&Chunk::Abort { reason });
            }
            TurnOutcome::Failed | TurnOutcome::Interrupted => {
                out.frame(&Chunk::Error { error_text: why(result) });
            }
        }
        self.finish(result, out);
    }

    fn close_calls(&mut self, out: &mut impl Frames<AiSdk>) {
        for (call, state) in self.calls.open() {
            let tool = self.calls.tool(&call).to_owned();
            if state == CallState::Streaming {
                self.call_cut((&call, &tool), &JsonText::null(), out);
            } else {
                self.call_failed(&call, NO_RESULT, out);
            }
        }
    }

    fn finish(&self, result: &TurnResult, out: &mut impl Frames<AiSdk>) {
        let reason = match result.outcome {
            TurnOutcome::Completed => self.stop_reason.unwrap_or(FinishReason::Stop),
            TurnOutcome::Cancelled => FinishReason::Other,
            TurnOutcome::Interrupted if SdkVersion::V7Interrupted <= self.version => {
                FinishReason::Interrupted
            }
            TurnOutcome::Failed | TurnOutcome::Interrupted => FinishReason::Error,
        };
        let message_metadata = FinishDto {
            outcome: result.outcome.as_str(),
            duration_ms: result.duration_ms,
            num_turns: result.num_turns,
            cost_usd: result.cost_usd,
            usage: result.usage.as_ref().map(ForeignJson),
        };
        let finish_reason = (SdkVersion::V6 <= self.version).then_some(reason);
        out.frame(&Chunk::Finish { finish_reason, message_metadata });
    }
}

fn finish_reason(word: &str) -> FinishReason {
    match word {
        "end_turn" | "stop_sequence" | "stop" => FinishReason::Stop,
        "max_tokens" | "length" => FinishReason::Length,
        "tool_use" | "tool_calls" => FinishReason::ToolCalls,
        "refusal" | "content_filter" => FinishReason::ContentFilter,
        _ => FinishReason::Other,
    }
}

/// The error text for the user.
fn why(result: &TurnResult) -> &str {
    let told = result.error.as_ref().map_or("", |error| &error.text);
    let interrupted = result.outcome == TurnOutcome::Interrupted;
    match (told, &result.text[..]) {
        ("", "") if interrupted => "the turn was interrupted: the agent's process is gone",
        ("", "") => "the agent failed",
        ("", _) if interrupted => "the turn was interrupted: the agent's process is gone",
        ("", text) => text,
        (told, _) => told,
    }
}
