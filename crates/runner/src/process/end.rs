//! How a run has ended, as its reader is told.

use std::fs::File;
use std::io;

use tokenrail_domain::{AgentError, ErrorClass};
use tokenrail_ports::{ExitStatus, RunEnd};

use super::{ExecFailure, ExitRecord, OverLimit, RunFolder, RunLimit, Unkept};

/// What the supervisor has written down, in the words of the port.
pub(super) fn run_end(exit: ExitRecord, stderr: String) -> RunEnd {
    let ExitRecord { code, signal, reaped, left, cancelled: _, failure, disk_full, unkept, over_limit } =
        exit;
    let status = match (code, signal) {
        _ if failure.is_some() => ExitStatus::None,
        (Some(code), _) => ExitStatus::Code(code),
        (None, Some(signal)) => ExitStatus::Signal(signal),
        (None, None) => ExitStatus::None,
    };
    let disk_full = disk_full.or_else(|| unkept.as_ref().map(|unkept| unkept.cause.text.clone()));
    let failed = failure.map(|failure| not_started(&failure));
    let told = [failed, over_limit.map(over_a_limit), unkept.map(not_kept), left_over(left)];
    let error = told
        .into_iter()
        .flatten()
        .reduce(|first, more| AgentError { text: format!("{}; {}", first.text, more.text), ..first });
    RunEnd { status, stderr, reaped, error, disk_full, rests: false }
}

fn not_started(failure: &ExecFailure) -> AgentError {
    let text = format!("the agent could not be started: {}", failure.text);
    if failure.disk_full {
        return AgentError { recoverable: true, ..process_error("storage_full", text) };
    }
    process_error("spawn_failed", text)
}

fn over_a_limit(OverLimit { limit, allowed, seen }: OverLimit) -> AgentError {
    let (code, text) = match limit {
        RunLimit::Processes => {
            let had = format!("the agent had {seen} processes at once, more than limits.agent_processes");
            ("processes_capped", format!("{had} ({allowed}) allows, and was ended"))
        }
        RunLimit::MemoryBytes => {
            let had = format!("the agent had {seen} bytes of memory, more than limits.agent_memory_bytes");
            ("memory_capped", format!("{had} ({allowed}) allows, and was ended"))
        }
    };
    process_error(code, text)
}

fn not_kept(Unkept { bytes, cause }: Unkept) -> AgentError {
    let lost = format!("{bytes} bytes of what the agent printed could not be kept");
    if cause.disk_full {
        let text = format!("the disk is full ({}); {lost}", cause.text);
        return AgentError { recoverable: true, ..process_error("storage_full", text) };
    }
    process_error("output_lost", format!("the agent's output cannot be written ({}); {lost}", cause.text))
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

/// Empties the spool of a run that a full disk has ended, and adds what is lost by that to how the run ended. A server
/// that adopts the run later finds no output, and how it ended.
pub(super) fn give_back(folder: &RunFolder, spool: &File, read_to: u64) -> io::Result<bool> {
    let Some(mut exit) = folder.read::<ExitRecord>(RunFolder::EXIT)? else { return Ok(false) };
    let Some(unkept) = exit.unkept.as_mut().filter(|unkept| unkept.cause.disk_full) else { return Ok(false) };
    unkept.bytes += spool.metadata()?.len().saturating_sub(read_to);
    // It makes the room for the next line.
    spool.set_len(0)?;
    folder.write_exit(&exit)?;
    Ok(true)
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

    #[test]
    fn output_that_could_not_be_kept_is_told_with_its_size_and_its_cause() {
        let unkept =
            |disk_full| Unkept { bytes: 70_000, cause: ExecFailure { text: "no room".into(), disk_full } };
        for (disk_full, code, recoverable) in [(true, "storage_full", true), (false, "output_lost", false)] {
            let exit = ExitRecord { code: Some(0), unkept: Some(unkept(disk_full)), ..ExitRecord::default() };
            let end = run_end(exit, String::new());
            let error = end.error.unwrap();
            assert_eq!((error.code.as_deref(), error.recoverable), (Some(code), recoverable));
            assert!(error.text.contains("70000 bytes") && error.text.contains("no room"), "{}", error.text);
            assert_eq!(end.disk_full.as_deref(), Some("no room"), "its exit code says nothing");
        }
    }
}
