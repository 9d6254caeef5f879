//! The stop reason of a run, in Letta's words. It is the same in the run's stream, in its JSON response and in the run
//! itself.

use tokenrail_application::STOP_REASON_EVENTS;
use tokenrail_domain::{Event, EventBody, Sequence, TurnOutcome};

/// The number of events at the end of a run that may contain the stop reason. Agents send it with their last message.
/// With this limit, a reader of the end alone needs only these events, and gets the same reason as the stream.
pub(crate) const REASON_EVENTS: u64 = STOP_REASON_EVENTS;

/// Finds the stop reason of a run in its events: in all of them, or only in the last [`REASON_EVENTS`].
#[derive(Debug, Clone, Default)]
pub(crate) struct Ending {
    said: Option<(Sequence, String)>,
}

impl Ending {
    /// Takes in the next event of the run. Returns the stop reason if the event is the last one.
    pub(crate) fn event(&mut self, event: &Event) -> Option<&'static str> {
        match &event.body {
            EventBody::Usage(usage) => {
                if let Some(reason) = &usage.stop_reason {
                    self.said = Some((event.sequence, reason.clone()));
                }
                None
            }
            EventBody::TurnResult(result) => {
                let near = |said: &&(Sequence, String)| event.sequence.0 - said.0.0 < REASON_EVENTS;
                let said = self.said.as_ref().filter(near).map(|(_, reason)| reason.as_str());
                Some(stop_reason(result.outcome, said))
            }
            _ => None,
        }
    }
}

/// Letta's word for how a run ended. `said` is the reason why its last message stopped, in the agent's own words.
pub(crate) fn stop_reason(outcome: TurnOutcome, said: Option<&str>) -> &'static str {
    match (outcome, said) {
        (TurnOutcome::Cancelled, _) => "cancelled",
        (TurnOutcome::Failed | TurnOutcome::Interrupted, _) | (_, Some("refusal")) => "error",
        (TurnOutcome::Completed, Some("max_tokens")) => "max_tokens_exceeded",
        (TurnOutcome::Completed, _) => "end_turn",
    }
}

#[cfg(test)]
mod tests {
    use tokenrail_domain::{Timestamp, TurnNumber, Usage};
    use tokenrail_ports::testing::samples;

    use super::*;

    fn event(sequence: u64, body: EventBody) -> Event {
        let (sequence, at) = (Sequence(sequence), Timestamp(0));
        Event { sequence, at, turn: TurnNumber::FIRST, body, raw: None }
    }

    fn ended(outcome: TurnOutcome, said: &[(u64, &str)], at: u64) -> &'static str {
        let mut ending = Ending::default();
        for (sequence, reason) in said {
            let usage = Usage { stop_reason: Some((*reason).to_owned()), usage: samples::json("{}") };
            assert_eq!(ending.event(&event(*sequence, EventBody::Usage(Box::new(usage)))), None);
        }
        ending.event(&event(at, EventBody::TurnResult(Box::new(samples::result(outcome))))).unwrap()
    }

    #[test]
    fn the_last_reason_near_the_end_counts() {
        use TurnOutcome::{Cancelled, Completed, Failed, Interrupted};
        assert_eq!(ended(Completed, &[], 9), "end_turn");
        assert_eq!(ended(Completed, &[(1, "max_tokens"), (2, "end_turn")], 9), "end_turn");
        assert_eq!(ended(Completed, &[(1, "tool_use"), (2, "max_tokens")], 9), "max_tokens_exceeded");
        assert_eq!(ended(Completed, &[(2, "refusal")], 9), "error");
        assert_eq!(ended(Completed, &[(2, "refusal")], 2 + REASON_EVENTS - 1), "error");
        assert_eq!(ended(Completed, &[(2, "refusal")], 2 + REASON_EVENTS), "end_turn", "too long ago");
        assert_eq!(ended(Cancelled, &[(2, "refusal")], 9), "cancelled");
        assert_eq!([Failed, Interrupted].map(|outcome| ended(outcome, &[], 9)), ["error"; 2]);
    }
}
