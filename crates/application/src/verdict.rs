//! Decides how a turn ended, from the agent's result, the end of its process, and the reason of a stop. Pure.

use tokenrail_domain::{AgentError, ErrorClass, StopReason, TurnClose, TurnOutcome};
use tokenrail_ports::{ExitStatus, RunEnd};

use crate::limits::Limits;
use crate::timers::Expired;

/// The process has ended, and the agent has not reported a result.
const NO_RESULT: &str = "no_result";
const STORAGE_FULL: &str = "storage_full";

/// Why a run was asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    Cancelled,
    /// The server stops, and its node leaves the others.
    NodeStops,
    /// Nothing reads its output any more, because it cannot be read or saved.
    Unread,
    Expired(Expired),
    /// It printed more than a limit allows.
    Flood(Flood),
    /// There was no room to save what it printed.
    FullDisk,
}

impl Stop {
    /// The stop for a stored reason.
    pub(crate) fn of(reason: StopReason) -> Self {
        match reason {
            StopReason::Cancelled => Self::Cancelled,
            StopReason::TurnTimeout => Self::Expired(Expired::Turn),
            StopReason::IdleTimeout => Self::Expired(Expired::Idle),
            StopReason::StreamTimeout => Self::Expired(Expired::Stream),
            StopReason::AfterResult => Self::Expired(Expired::AfterResult),
            StopReason::SpoolBytes => Self::Flood(Flood::Spool),
            StopReason::MessageBytes => Self::Flood(Flood::Messages),
        }
    }

    /// The reason to store with the turn. `None` if the server must decide again after a restart.
    pub(crate) fn reason(self) -> Option<StopReason> {
        Some(match self {
            Self::Cancelled => StopReason::Cancelled,
            // On a full disk nothing can be saved, and after a restart the server sees for itself whether the disk is
            // full. A server that is killed while it stops finds at its next start what is left.
            Self::Unread | Self::FullDisk | Self::NodeStops => return None,
            Self::Expired(Expired::Turn) => StopReason::TurnTimeout,
            Self::Expired(Expired::Idle) => StopReason::IdleTimeout,
            Self::Expired(Expired::Stream) => StopReason::StreamTimeout,
            Self::Expired(Expired::AfterResult) => StopReason::AfterResult,
            Self::Flood(Flood::Spool) => StopReason::SpoolBytes,
            Self::Flood(Flood::Messages) => StopReason::MessageBytes,
        })
    }
}

/// What an agent can print too much of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flood {
    Spool,
    Messages,
}

impl Flood {
    /// The name of the limit.
    fn limit(self) -> &'static str {
        match self {
            Self::Spool => "limits.spool_bytes",
            Self::Messages => "limits.message_bytes",
        }
    }
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) outcome: TurnOutcome,
    pub(crate) error: Option<AgentError>,
    /// Whether the error is recorded as an event, because the agent has not reported it itself.
    pub(crate) say: bool,
}

impl Verdict {
    pub(crate) fn failed(error: AgentError) -> Self {
        Self { outcome: TurnOutcome::Failed, error: Some(error), say: true }
    }

    /// The node that ran the agent, or that would have run it, is lost.
    pub(crate) fn node_lost() -> Self {
        let text = "the agent's node is lost or was removed, so the turn was ended, and output that the node had not \
                    saved yet is lost; send the message again, or launch a new agent if this one accepts no messages";
        let error = process_error("node_lost", text.to_owned(), true);
        Self { outcome: TurnOutcome::Interrupted, error: Some(error), say: true }
    }

    /// The node was stopped, and leaves the others.
    pub(crate) fn node_stopped() -> Self {
        let text = "the server that ran this agent was stopped; send the message again";
        let error = process_error("node_stopped", text.to_owned(), true);
        Self { outcome: TurnOutcome::Interrupted, error: Some(error), say: true }
    }

    /// The agent's process is gone, and the agent had not reported a result.
    fn interrupted(text: &str) -> Self {
        let error = process_error("interrupted", text.to_owned(), true);
        Self { outcome: TurnOutcome::Interrupted, error: Some(error), say: false }
    }

    /// The last output did not fit on the disk. `unsaved_bytes` of it were read. `lost` is the error of the run about
    /// output that was never read.
    pub(crate) fn without_room(lost: Option<&AgentError>, unsaved_bytes: u64) -> Self {
        let text = format!(
            "the disk is full: the last {unsaved_bytes} bytes of output and the incomplete messages could \
             not be saved"
        );
        let text = lost.map_or_else(|| text.clone(), |lost| format!("{}; {text}", lost.text));
        Self::failed(process_error(STORAGE_FULL, text, true))
    }

    /// The server has failed, not the agent.
    pub(crate) fn internal() -> Self {
        let text = "an internal error ended the turn; see the server log";
        Self::failed(AgentError::new(ErrorClass::Unknown, Some("internal"), text).recoverable())
    }

    /// If the process ended without a result, sets the error's class to that of its standard error, if that shows
    /// one.
    pub(crate) fn classed(mut self, class: impl FnOnce() -> Option<ErrorClass>) -> Self {
        if let Some(error) = self.error.as_mut().filter(|error| error.code.as_deref() == Some(NO_RESULT))
            && let Some(class) = class()
        {
            (error.class, error.recoverable) = (class, class.is_recoverable());
        }
        self
    }

    /// The turn was cancelled, and has no run: its agent was not started, or is a replay.
    pub(crate) fn cancelled() -> Self {
        Self::of(TurnOutcome::Cancelled)
    }

    fn of(outcome: TurnOutcome) -> Self {
        Self { outcome, error: None, say: false }
    }
}

/// If the agent reported a result, that decides: a process that exits with 0 has not necessarily succeeded, and one
/// that was killed after its result may have.
pub(crate) fn verdict(
    close: Option<&TurnClose>,
    stop: Option<Stop>,
    end: &RunEnd,
    limits: &Limits,
) -> Verdict {
    let stopped = stop.and_then(|stop| stop_error(stop, end, limits));
    match (close, stop) {
        (Some(close), None | Some(_)) if close.error.is_none() && !close.interrupted => {
            Verdict::of(TurnOutcome::Completed)
        }
        (_, Some(Stop::Cancelled)) => Verdict::of(TurnOutcome::Cancelled),
        (_, Some(Stop::NodeStops)) => Verdict::node_stopped(),
        (Some(TurnClose { error: Some(error), interrupted: false, .. }), None) => {
            Verdict { outcome: TurnOutcome::Failed, error: Some(error.clone()), say: false }
        }
        (Some(_), None) => {
            let text = "something other than a cancel request interrupted the agent; send the message again"
                .to_owned();
            Verdict::failed(process_error("interrupted_outside", text, true))
        }
        (Some(close), Some(_)) => match (stopped, close.error.clone()) {
            (Some(error), _) => Verdict::failed(error),
            // The agent has reported its error itself, unless it was interrupted.
            (None, Some(error)) => Verdict { say: close.interrupted, ..Verdict::failed(error) },
            (None, None) => Verdict::of(TurnOutcome::Completed),
        },
        (None, _) => match stopped.or_else(|| end.error.clone()) {
            Some(error) => Verdict::failed(error),
            None => match end.status {
                ExitStatus::Lost => Verdict::interrupted(
                    "the agent and its supervisor were killed during the turn; send the message again",
                ),
                ExitStatus::Gone => Verdict::interrupted(
                    "the server stopped during the turn, and the agent's process is gone; send the message again",
                ),
                _ => Verdict::failed(no_result(end)),
            },
        },
    }
}

pub(crate) fn is_storage_full(error: &AgentError) -> bool {
    error.code.as_deref() == Some(STORAGE_FULL)
}

fn stop_error(stop: Stop, end: &RunEnd, limits: &Limits) -> Option<AgentError> {
    match stop {
        Stop::Cancelled | Stop::NodeStops | Stop::Unread => None,
        Stop::Expired(expired) => expired.to_agent_error(limits),
        Stop::FullDisk => {
            // The run reports how much of its output is lost.
            let lost = end.error.clone().filter(is_storage_full);
            let text = || {
                "the disk is full: a part of the agent's output was lost, and the agent was terminated"
                    .to_owned()
            };
            Some(lost.unwrap_or_else(|| process_error(STORAGE_FULL, text(), true)))
        }
        Stop::Flood(flood) => {
            let limit = flood.limit();
            let text = format!(
                "the agent printed more than {limit} allows and was terminated; if it needs more, raise the limit"
            );
            Some(process_error("output_capped", text, false))
        }
    }
}

fn no_result(end: &RunEnd) -> AgentError {
    let how = match end.status {
        ExitStatus::Code(code) => format!("the agent exited with code {code} without a result"),
        ExitStatus::Signal(signal) => format!("the agent was killed by signal {signal} without a result"),
        ExitStatus::Lost | ExitStatus::Gone | ExitStatus::None => {
            "the agent's output ended without a result".to_owned()
        }
    };
    let stderr = end.stderr.trim();
    let text = if stderr.is_empty() { how } else { format!("{how}: {stderr}") };
    match &end.disk_full {
        Some(cause) => process_error(STORAGE_FULL, format!("the disk is full ({cause}); {text}"), true),
        None => process_error(NO_RESULT, text, false),
    }
}

fn process_error(code: &str, text: String, recoverable: bool) -> AgentError {
    AgentError { recoverable, ..AgentError::new(ErrorClass::Process, Some(code), text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_is_the_same_in_the_next_life() {
        for reason in StopReason::ALL {
            assert_eq!(Stop::of(reason).reason(), Some(reason));
        }
    }

    fn close(error: bool, interrupted: bool) -> TurnClose {
        let error = error.then(|| process_error("x", "it broke".into(), false));
        TurnClose { error, interrupted, ..TurnClose::default() }
    }

    fn exited(code: i32) -> RunEnd {
        RunEnd { status: ExitStatus::Code(code), ..RunEnd::default() }
    }

    fn check(close: Option<&TurnClose>, stop: Option<Stop>, end: &RunEnd, expected: (&str, Option<&str>)) {
        let verdict = verdict(close, stop, end, &Limits::default());
        let code = verdict.error.as_ref().and_then(|error| error.code.as_deref());
        assert_eq!((verdict.outcome.as_str(), code), expected);
    }

    #[test]
    fn the_result_decides_and_not_the_exit_code() {
        check(Some(&close(false, false)), None, &exited(1), ("completed", None));
        check(Some(&close(true, false)), None, &exited(0), ("failed", Some("x")));
        check(None, None, &exited(0), ("failed", Some("no_result")));
    }

    #[test]
    fn standard_error_classes_what_has_no_other_reason() {
        let class = |close: Option<&TurnClose>, stop| {
            let verdict = verdict(close, stop, &exited(1), &Limits::default());
            verdict
                .classed(|| Some(ErrorClass::Overloaded))
                .error
                .map(|error| (error.class, error.recoverable))
        };
        assert_eq!(class(None, None), Some((ErrorClass::Overloaded, true)));
        assert_eq!(class(Some(&close(true, false)), None), Some((ErrorClass::Process, false)));
        assert_eq!(class(None, Some(Stop::Cancelled)), None);
    }

    #[test]
    fn a_full_disk_is_the_reason_only_where_there_is_no_result() {
        let full = RunEnd { disk_full: Some("no room".into()), ..exited(70) };
        check(None, None, &full, ("failed", Some("storage_full")));
        check(None, Some(Stop::Cancelled), &full, ("cancelled", None));
        check(Some(&close(false, false)), None, &full, ("completed", None));
    }

    #[test]
    fn a_cancel_that_came_too_late_changes_nothing() {
        check(Some(&close(false, false)), Some(Stop::Cancelled), &exited(0), ("completed", None));
        check(None, Some(Stop::Cancelled), &exited(0), ("cancelled", None));
        check(Some(&close(true, true)), Some(Stop::Cancelled), &exited(0), ("cancelled", None));
    }

    #[test]
    fn an_interrupt_that_nobody_here_asked_for_is_a_failure() {
        check(Some(&close(false, true)), None, &exited(0), ("failed", Some("interrupted_outside")));
        let idle = Some(Stop::Expired(Expired::Idle));
        check(Some(&close(true, true)), idle, &exited(0), ("failed", Some("idle_timeout")));
    }

    #[test]
    fn an_agent_that_hangs_after_its_result_has_completed() {
        let after = Some(Stop::Expired(Expired::AfterResult));
        check(Some(&close(false, false)), after, &exited(137), ("completed", None));
    }

    #[test]
    fn an_error_that_the_agent_has_reported_is_not_recorded_again_if_it_hangs_afterwards() {
        let after = Some(Stop::Expired(Expired::AfterResult));
        let say = |close, stop| verdict(Some(&close), stop, &exited(137), &Limits::default()).say;
        check(Some(&close(true, false)), after, &exited(137), ("failed", Some("x")));
        assert!(!say(close(true, false), after) && !say(close(true, false), None));
        // Of an interrupted turn, the agent reports no error.
        assert!(say(close(true, true), after));
        assert!(say(close(true, false), Some(Stop::Expired(Expired::Idle))));
    }

    #[test]
    fn without_result_and_supervisor_a_turn_is_interrupted() {
        let lost = RunEnd { status: ExitStatus::Lost, ..RunEnd::default() };
        check(None, None, &lost, ("interrupted", Some("interrupted")));
        check(Some(&close(false, false)), None, &lost, ("completed", None));
    }
}
