//! How a response ends.

use tokenrail_domain::{Event, MessageOutcome, TurnOutcome, TurnResult};

use crate::vocabularies::openai::dto::{Incomplete, ItemStatus, ResponseDto, ResponseFailure};
use crate::vocabularies::turns::turn_events::failure;

/// Writes the end of the turn into the response. Returns the type of the last event. A cancelled response has no event
/// of its own in OpenAI's streams, so it ends like an incomplete one; its status says what it is.
pub(super) fn end(
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
