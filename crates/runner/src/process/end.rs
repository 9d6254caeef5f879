//! How a run has ended, as its reader is told.

use tokenrail_domain::{AgentError, ErrorClass};
use tokenrail_ports::{ExitStatus, RunEnd};

use super::{ExecFailure, ExitRecord, OverLimit, RunLimit};

/// What the supervisor has written down, in the words of the port.
pub(super) fn run_end(exit: ExitRecord, stderr: String) -> RunEnd {
    let ExitRecord { code, signal, reaped, left, cancelled: _, failure, disk_full, over_limit } = exit;
    let status = match (code, signal) {
        _ if failure.is_some() => ExitStatus::None,
        (Some(code), _) => ExitStatus::Code(code),
        (None, Some(signal)) => ExitStatus::Signal(signal),
        (None, None) => ExitStatus::None,
    };
    let error = match (failure, over_limit) {
        (Some(failure), _) => Some(not_started(&failure)),
        (None, Some(over)) => Some(over_a_limit(over, left)),
        (None, None) => left_over(left),
    };
    RunEnd { status, stderr, reaped, error, disk_full, rests: false }
}

fn not_started(failure: &ExecFailure) -> AgentError {
    let text = format!("the agent could not be started: {}", failure.text);
    if failure.disk_full {
        return AgentError { recoverable: true, ..process_error("storage_full", text) };
    }
    process_error("spawn_failed", text)
}

fn over_a_limit(OverLimit { limit, allowed, seen }: OverLimit, left: u32) -> AgentError {
    let (code, mut text) = match limit {
        RunLimit::Processes => {
            let had = format!("the agent had {seen} processes at once, more than limits.agent_processes");
            ("processes_capped", format!("{had} ({allowed}) allows, and was ended"))
        }
        RunLimit::MemoryBytes => {
            let had = format!("the agent had {seen} bytes of memory, more than limits.agent_memory_bytes");
            ("memory_capped", format!("{had} ({allowed}) allows, and was ended"))
        }
    };
    if let Some(left) = left_over(left) {
        text = format!("{text}; {}", left.text);
    }
    process_error(code, text)
}

pub(super) fn left_over(left: u32) -> Option<AgentError> {
    let text = || format!("{left} processes of the run could not be ended");
    (0 < left).then(|| process_error("processes_left", text()))
}

fn process_error(code: &str, text: String) -> AgentError {
    let class = ErrorClass::Process;
    AgentError {
        class,
        code: Some(code.to_owned()),
        text,
        retry_after_ms: None,
        recoverable: class.is_recoverable(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_earlier_version_has_written_down_can_be_read() {
        let old = r#"{"code":null,"signal":9,"reaped":2,"left":0,"cancelled":true,"failure":null,"disk_full":null}"#;
        let end = run_end(serde_json::from_str(old).unwrap(), String::new());
        assert_eq!((end.status, end.reaped, end.error), (ExitStatus::Signal(9), 2, None));
    }

    #[test]
    fn the_limit_that_ended_a_run_is_told_with_what_was_seen_and_what_is_left() {
        let over = OverLimit { limit: RunLimit::Processes, allowed: 10, seen: 17 };
        let exit = ExitRecord { signal: Some(9), left: 1, over_limit: Some(over), ..ExitRecord::default() };
        let kept = serde_json::to_string(&exit).unwrap();
        let error = run_end(serde_json::from_str(&kept).unwrap(), String::new()).error.unwrap();
        assert_eq!(error.code.as_deref(), Some("processes_capped"));
        assert!(!error.recoverable, "the same prompt ends in the same way");
        for part in ["17", "limits.agent_processes (10)", "1 processes of the run could not be ended"] {
            assert!(error.text.contains(part), "{}", error.text);
        }
    }
}
