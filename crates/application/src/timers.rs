//! Which timeout of a turn expires next, and what that means. Pure.

use std::time::Duration;

use tokenrail_domain::{AgentError, ErrorClass};
use tokenrail_ports::Activity;
use tokio::time::Instant;

use crate::limits::Limits;

/// What the timeouts depend on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Watched {
    pub(crate) times: TurnTimes,
    pub(crate) message_open: bool,
    pub(crate) activity: Activity,
}

/// The instants from which a turn's timeouts count.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TurnTimes {
    pub(crate) started: Instant,
    pub(crate) last_output: Instant,
    /// When the agent reported its result.
    pub(crate) result_at: Option<Instant>,
}

impl TurnTimes {
    /// Notes whether the agent has reported its result by `now`. The first instant stays.
    pub(crate) fn note_result(&mut self, has_result: bool, now: Instant) {
        if has_result {
            self.result_at.get_or_insert(now);
        } else {
            self.result_at = None;
        }
    }
}

/// Which timeout expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expired {
    /// The turn has taken too long.
    Turn,
    /// The agent has been silent for too long.
    Idle,
    /// The agent has been silent for too long in the middle of a message.
    Stream,
    /// The agent still runs after its result. The result decides the turn; only the process is ended.
    AfterResult,
}

/// The next timeout, and when it expires if nothing happens until then. `None` if none ever expires.
pub(crate) fn next_deadline(watched: &Watched, limits: &Limits) -> Option<(Instant, Expired)> {
    let turn = after(watched.times.started, limits.run.turn_timeout, Expired::Turn);
    let is_in_message = watched.message_open && !watched.activity.message_whole;
    let other = match watched.times.result_at {
        Some(result_at) if !watched.activity.background => {
            after(result_at, limits.run.result_grace, Expired::AfterResult)
        }
        _ if watched.activity.tool_running => None,
        None if is_in_message && limits.run.stream_timeout < limits.run.idle_timeout => {
            after(watched.times.last_output, limits.run.stream_timeout, Expired::Stream)
        }
        _ => after(watched.times.last_output, limits.run.idle_timeout, Expired::Idle),
    };
    turn.into_iter().chain(other).min_by_key(|(at, _)| *at)
}

/// A timeout whose end is beyond what the clock can represent never expires.
fn after(begin: Instant, bound: Duration, expired: Expired) -> Option<(Instant, Expired)> {
    begin.checked_add(bound).map(|at| (at, expired))
}

impl Expired {
    /// The error of the turn. `None` if the turn ends as the agent has reported.
    pub(crate) fn to_agent_error(self, limits: &Limits) -> Option<AgentError> {
        let (code, text) = match self {
            Self::Turn => {
                let what = "the turn took longer than";
                ("turn_timeout", sentence(what, limits.run.turn_timeout, "limits.turn_timeout_s"))
            }
            Self::Idle => {
                let what = "the agent produced no output for";
                ("idle_timeout", sentence(what, limits.run.idle_timeout, "limits.idle_timeout_s"))
            }
            Self::Stream => {
                let what = "the agent stalled in the middle of a message for";
                ("stream_timeout", sentence(what, limits.run.stream_timeout, "limits.stream_timeout_s"))
            }
            Self::AfterResult => return None,
        };
        Some(AgentError::new(ErrorClass::Timeout, Some(code), text))
    }
}

fn sentence(what: &str, bound: Duration, limit: &str) -> String {
    format!(
        "{what} {} s ({limit}) and was terminated; if it needs more time, raise the limit",
        bound.as_secs_f64()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched() -> Watched {
        let now = Instant::now();
        Watched {
            times: TurnTimes { started: now, last_output: now + Duration::from_secs(30), result_at: None },
            message_open: false,
            activity: Activity::default(),
        }
    }

    fn check(watched: Watched, expired: Expired, after_s: u64) {
        let (at, what) = next_deadline(&watched, &Limits::default()).unwrap();
        assert_eq!((what, at), (expired, watched.times.started + Duration::from_secs(after_s)));
    }

    #[test]
    fn silence_is_counted_from_the_last_output() {
        check(watched(), Expired::Idle, 630);
        check(Watched { message_open: true, ..watched() }, Expired::Stream, 90);
    }

    #[test]
    fn a_message_that_is_all_there_is_not_silent() {
        let activity = Activity { message_whole: true, ..Activity::default() };
        check(Watched { message_open: true, activity, ..watched() }, Expired::Idle, 630);
    }

    #[test]
    fn what_no_clock_can_tell_is_never_reached() {
        let mut limits = Limits::default();
        for timeout in
            [&mut limits.run.turn_timeout, &mut limits.run.idle_timeout, &mut limits.run.result_grace]
        {
            *timeout = Duration::MAX;
        }
        assert_eq!(next_deadline(&watched(), &limits), None);
        let mut closed = watched();
        closed.times.result_at = Some(Instant::now());
        assert_eq!(next_deadline(&closed, &limits), None);
    }

    #[test]
    fn a_running_tool_may_be_silent_until_the_turn_is_over() {
        let activity = Activity { tool_running: true, ..Activity::default() };
        check(Watched { activity, message_open: true, ..watched() }, Expired::Turn, 3600);
    }

    #[test]
    fn after_its_result_an_agent_has_a_short_grace_unless_something_goes_on_in_the_background() {
        let background = Activity { background: true, ..Activity::default() };
        let with = |activity| {
            let mut watched = Watched { activity, ..watched() };
            watched.times.result_at = Some(watched.times.started + Duration::from_secs(40));
            watched
        };
        check(with(Activity::default()), Expired::AfterResult, 50);
        check(with(background), Expired::Idle, 630);
    }
}
