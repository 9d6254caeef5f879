//! The ends of runs, and messages that the agent abandons.

use tokenrail_domain::{JsonText, MessageOrdinal, Part, TurnOutcome, TurnResult};

use super::calls::Call;
use super::teller::{Teller, piece};
use super::tools::end_call;
use super::{AgUi, AgUiFold};
use crate::fold::Frames;
use crate::json::TokenUsage;
use crate::vocabularies::ag_ui::dto::{
    AbandonedPartsDto, AgUiEvent, CustomDto, InterruptDto, OutcomeDto, RunResultDto, RunUsageDto,
};
use crate::vocabularies::turns::call_state::CallState;
use crate::vocabularies::turns::permission_notices::AskedPermission;
use crate::vocabularies::turns::said_words::WordKind;
use crate::vocabularies::turns::turn_events::failure;

/// The results of calls that have none of their own.
const CUT: &str = "The call was incomplete.";
const NO_RESULT: &str = "The turn ended without a result for this call.";

impl AgUiFold {
    /// The agent discards a message and sends it again. Nothing that was sent can be taken back, so the client learns
    /// what it should discard.
    pub(super) fn abandoned<T: Frames<AgUi>>(&mut self, message: MessageOrdinal, out: &mut Teller<'_, T>) {
        self.end_words(message, out);
        let message_ids = self.open.remove(&message).unwrap_or_default().ids;
        let is_undone = |call: &Call| call.message == Some(message) && call.state != CallState::Ended;
        let tool_call_ids = self.cut(is_undone, CUT, out);
        if message_ids.is_empty() && tool_call_ids.is_empty() {
            return;
        }
        let value = CustomDto::Abandoned(AbandonedPartsDto { message_ids, tool_call_ids });
        out.tell(AgUiEvent::Custom { name: "tokenrail.abandoned", value });
    }

    /// Ends calls that will not be continued. Returns their ids.
    pub(super) fn cut<T: Frames<AgUi>>(
        &mut self,
        fits: impl Fn(&Call) -> bool,
        why: &str,
        out: &mut Teller<'_, T>,
    ) -> Vec<String> {
        let run = self.runs.number;
        let cut = self.calls.take(fits).into_iter().map(|mut call| {
            end_call(&mut call, run, why, true, out);
            call.id
        });
        cut.collect()
    }

    /// The agent asks for permission and waits, which ends the run.
    pub(super) fn asked<T: Frames<AgUi>>(
        &mut self,
        request: &AskedPermission,
        data: &JsonText,
        out: &mut Teller<'_, T>,
    ) {
        if let Some(call) = &request.tool_call_id {
            self.made((call, &request.tool_name), &request.input(), None, None, out);
        }
        self.end_all_words(out);
        // The agent may still be writing other calls. They begin again in the next run.
        self.cut(|call| call.state == CallState::Streaming, CUT, out);
        self.sub_agents.suspend(out);
        let known = request.tool_call_id.as_deref().and_then(|call| self.calls.get(call));
        let interrupt = InterruptDto::new(self.turn, request, data, known.map(|call| call.id.as_str()));
        let usage = RunUsageDto::of(std::mem::take(&mut self.usage));
        let finish = |thread_id: &str, run_id: &str, out: &mut Teller<'_, T>| {
            let outcome = Some(OutcomeDto::Interrupt { interrupts: [interrupt] });
            out.tell(AgUiEvent::RunFinished { thread_id, run_id, outcome, result: None, usage });
        };
        self.runs.interrupt(&request.request_id, finish, out);
    }

    /// Ends everything that is open, and then the last run of the turn.
    pub(super) fn end<T: Frames<AgUi>>(&mut self, result: &TurnResult, out: &mut Teller<'_, T>) {
        if result.outcome == TurnOutcome::Completed && !self.has_said_text() {
            // Some agents send their text only with the result.
            let message = MessageOrdinal(self.newest.map_or(0, |newest| newest.0 + 1));
            self.say((message, Part(0)), WordKind::Text, &result.text, out);
        }
        self.end_all_words(out);
        let run = self.runs.number;
        for mut call in self.calls.take(|call| call.state != CallState::Ended) {
            let is_cut = call.state == CallState::Streaming;
            let why = if is_cut { CUT } else { NO_RESULT };
            end_call(&mut call, run, why, true, out);
        }
        let failure = failure(result);
        let stopped = (result.outcome == TurnOutcome::Cancelled).then_some("cancelled");
        self.sub_agents.end_all(failure.map(|(_, text, _)| piece(text)).or(stopped), run, out);
        let usage = RunUsageDto::of(self.used(result));
        let knows_cancelled = self.runs.knows_cancelled();
        let result = RunResultDto::new(result, self.stop_reason.as_deref());
        let finish = |thread_id: &str, run_id: &str, out: &mut Teller<'_, T>| {
            out.tell(match (failure, stopped) {
                (Some((class, message, code)), _) => {
                    AgUiEvent::RunError { message: piece(message), code: code.unwrap_or(class), usage }
                }
                (None, stopped) => {
                    let cancelled = knows_cancelled.then_some(OutcomeDto::Cancelled);
                    let outcome = if stopped.is_some() { cancelled } else { Some(OutcomeDto::Success) };
                    AgUiEvent::RunFinished { thread_id, run_id, outcome, result: Some(result), usage }
                }
            });
        };
        self.runs.end(finish, out);
    }

    /// What the last run has used: what the result says of the whole turn if the turn is one run, or else the sum of
    /// its messages.
    fn used(&self, result: &TurnResult) -> TokenUsage {
        match &result.usage {
            Some(whole) if self.runs.number == 0 => {
                let mut usage = TokenUsage::default();
                usage.add(whole);
                usage
            }
            _ => self.usage,
        }
    }
}
