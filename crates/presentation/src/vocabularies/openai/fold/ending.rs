//! How a response ends.

use tokenrail_domain::{Event, MessageOrdinal, MessageOutcome, Part, TurnOutcome, TurnResult};

use super::{OpenAi, ResponsesFold};
use crate::fold::Frames;
use crate::vocabularies::openai::dto::{Incomplete, ItemStatus, ResponseDto, ResponseFailure, UsageDto};
use crate::vocabularies::openai::journal_text::TextPart;
use crate::vocabularies::turns::call_state::CallState;
use crate::vocabularies::turns::said_words::{SaidWords, WordKind};
use crate::vocabularies::turns::turn_events::failure;

/// The number of a text that belongs to no message of the agent.
const NO_MESSAGE: MessageOrdinal = MessageOrdinal(u32::MAX);

impl ResponsesFold {
    /// Ends everything that is open, in the order in which it began, and then the response.
    pub(super) fn end(&mut self, event: &Event, result: &TurnResult, out: &mut impl Frames<OpenAi>) {
        if result.outcome == TurnOutcome::Completed && !self.output.has_text() {
            // Some agents send their text only with the result.
            self.say((NO_MESSAGE, Part(0)), (WordKind::Text, TextPart::Ending), &result.text, out);
        }
        let status = ItemStatus::of_rest(result.outcome);
        let words = self.open.values_mut().filter_map(SaidWords::close);
        let mut open: Vec<_> = words.map(|open| (open.id, Some(open.kind))).collect();
        let calls = self.calls.values().filter(|call| call.state != CallState::Ended);
        open.extend(calls.map(|call| (call.position, None)));
        open.sort_unstable_by_key(|(position, _)| *position);
        for (position, kind) in open {
            match kind {
                Some(kind) => self.output.end_words(position, kind, status, out),
                None => self.output.end_item(position, ItemStatus::Incomplete, out),
            }
        }
        let kind = end(&mut self.response, event, result, self.stop_reason.as_deref());
        self.response.usage = Some(UsageDto::of(result, self.usage));
        self.output.lifecycle(kind, &self.response, out);
    }
}

/// Writes the end of the turn into the response. Returns the type of the last event. A cancelled response has no event
/// of its own in OpenAI's streams, so it ends like an incomplete one; its status says what it is.
fn end(
    response: &mut ResponseDto,
    event: &Event,
    result: &TurnResult,
    stop_reason: Option<&str>,
) -> &'static str {
    response.completed_at = Some(event.at.0.div_euclid(1000));
    if let Some((class, message, _)) = failure(result) {
        response.error = Some(ResponseFailure::new(class, message));
        response.status = "failed";
        return "response.failed";
    }
    let reason = match (result.outcome, stop_reason) {
        (TurnOutcome::Cancelled, _) => {
            response.status = "cancelled";
            return "response.incomplete";
        }
        (_, Some("max_tokens")) => "max_output_tokens",
        (_, Some("refusal")) => "content_filter",
        _ => {
            response.status = "completed";
            return "response.completed";
        }
    };
    response.incomplete_details = Some(Incomplete { reason });
    response.status = "incomplete";
    "response.incomplete"
}

impl ItemStatus {
    /// The status of the items of a message that has ended.
    pub(super) fn of(outcome: MessageOutcome) -> Self {
        match outcome {
            MessageOutcome::Complete => Self::Completed,
            MessageOutcome::Failed | MessageOutcome::Cancelled | MessageOutcome::Interrupted => {
                Self::Incomplete
            }
        }
    }

    /// The status of text that is open at the end of its turn.
    pub(super) fn of_rest(outcome: TurnOutcome) -> Self {
        match outcome {
            TurnOutcome::Completed => Self::Completed,
            TurnOutcome::Failed | TurnOutcome::Cancelled | TurnOutcome::Interrupted => Self::Incomplete,
        }
    }
}
