//! The end of a task whose read or write the store refused for good.

use tokenrail_ports::StoreError;

use super::AgentTask;
use crate::core::SaveError;

impl AgentTask {
    /// Ends the task, although the agent has open turns.
    pub(super) fn give_up(&self, why: &SaveError) {
        if let SaveError::Refused(error) = why {
            self.log_refused(error);
        }
        self.core.retire_now(self.agent, &self.tail);
        if let SaveError::LetGo = why {
            // Only now: this node may take it too, with another task.
            self.core.offer_to_all_nodes();
        }
    }

    /// Says in the log why the task ends.
    fn log_refused(&self, error: &StoreError) {
        let (agent, text) = (self.agent, reason(error));
        let error = error as &dyn std::error::Error;
        tracing::error!(%agent, error, "{text}");
    }
}

/// What has happened, and when the agent's open turns continue.
fn reason(error: &StoreError) -> &'static str {
    match error {
        StoreError::Corrupt(_) => {
            "the database is corrupt, so this agent's turns do not continue; stop the server and run `tokenrail doctor`"
        }
        StoreError::UnknownAgent(_) => "this agent was purged while a turn was open, so the turn has ended",
        StoreError::Fenced => "another server has taken over this agent, so its turns do not continue here",
        StoreError::Outdated { .. } => "this server is too old for the database; install the newer version",
        StoreError::Conflict { .. } => {
            "internal error: what the server has in memory about this agent differs from the database; its queued \
             turns continue after its next message or after a restart of the server"
        }
        // A task retries these. If one arrives here all the same, nothing is known about the database.
        StoreError::Busy
        | StoreError::Full
        | StoreError::OutcomeUnknown(_)
        | StoreError::Unreachable(_)
        | StoreError::WrongServer(_)
        | StoreError::Unavailable(_) => {
            "the database cannot be used for this agent now; the agent's queued turns continue after its next \
             message or after a restart of the server"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_state_that_differs_from_the_database_is_an_internal_error() {
        let is_internal = |error: &StoreError| reason(error).starts_with("internal error");
        assert!(is_internal(&StoreError::Conflict { head: tokenrail_domain::Sequence(3) }));
        for error in [StoreError::Corrupt("a text has another checksum".to_owned()), StoreError::Full] {
            assert!(!is_internal(&error), "{error}");
        }
        assert!(reason(&StoreError::Corrupt(String::new())).contains("the database is corrupt"));
    }
}
