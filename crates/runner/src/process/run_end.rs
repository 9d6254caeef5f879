//! How a run ended, as its reader sees it.

use std::fs::File;
use std::io;

use rustix::io::Errno;
use tokenrail_domain::{AgentError, ErrorClass};
use tokenrail_ports::{ExitStatus, RunEnd, SpaceWait};

use crate::run_folder::{ExitRecord, OverLimit, RunFailure, RunFolder, RunLimit, Unkept};

/// The supervisor's record, as the type of the port.
pub(super) fn run_end(exit: ExitRecord, stderr: String) -> RunEnd {
    let ExitRecord {
        code,
        signal,
        reaped,
        left,
        cancelled: _,
        failure,
        disk_full,
        unkept,
        over_limit,
        emptied_at: _,
    } = exit;
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
    RunEnd { status, stderr, reaped, error, disk_full, idle: false }
}

fn not_started(failure: &RunFailure) -> AgentError {
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
            (
                "processes_capped",
                format!("{had} ({allowed}) allows, and was terminated; if it needs more, raise the limit"),
            )
        }
        RunLimit::MemoryBytes => {
            let had = format!("the agent had {seen} bytes of memory, more than limits.agent_memory_bytes");
            (
                "memory_capped",
                format!("{had} ({allowed}) allows, and was terminated; if it needs more, raise the limit"),
            )
        }
    };
    process_error(code, text)
}

fn not_kept(Unkept { bytes, cause }: Unkept) -> AgentError {
    let lost = format!("{bytes} bytes of the agent's output were lost");
    if cause.disk_full {
        let text = format!("the disk is full ({}); {lost}", cause.text);
        return AgentError { recoverable: true, ..process_error("storage_full", text) };
    }
    process_error("output_lost", format!("cannot write the agent's output ({}); {lost}", cause.text))
}

pub(super) fn left_over(left: u32) -> Option<AgentError> {
    let text = match left {
        0 => return None,
        1 => "the server could not terminate 1 process of the run; terminate it by hand".to_owned(),
        many => format!("the server could not terminate {many} processes of the run; terminate them by hand"),
    };
    Some(process_error("processes_left", text))
}

fn process_error(code: &str, text: String) -> AgentError {
    AgentError::new(ErrorClass::Process, Some(code), text)
}

/// The record of a run whose spool is emptied, because the disk is full. The unread output is lost. `None` if the spool
/// must be kept: while the wait continues, only a run that a full disk has ended frees its space.
pub(super) fn emptied(
    mut exit: ExitRecord,
    spool_bytes: u64,
    read_to: u64,
    wait: SpaceWait,
) -> Option<ExitRecord> {
    let ended_by_disk = exit.unkept.as_ref().is_some_and(|unkept| unkept.cause.disk_full);
    if !ended_by_disk && wait == SpaceWait::Continues {
        return None;
    }
    lose(&mut exit, spool_bytes.saturating_sub(read_to));
    exit.emptied_at = Some(read_to);
    Some(exit)
}

/// Adds the output that was read before the spool was emptied, and not saved before the server died. `kept` is the
/// end of the output that is saved, or that this server has read.
pub(super) fn with_unsaved(mut exit: ExitRecord, kept: u64) -> ExitRecord {
    if let Some(read_to) = exit.emptied_at {
        lose(&mut exit, read_to.saturating_sub(kept));
    }
    exit
}

fn lose(exit: &mut ExitRecord, bytes: u64) {
    if bytes == 0 {
        return;
    }
    let cause = || RunFailure::from(&io::Error::from_raw_os_error(Errno::NOSPC.raw_os_error()));
    exit.unkept.get_or_insert_with(|| Unkept { bytes: 0, cause: cause() }).bytes += bytes;
}

/// Empties the spool and records how the run ended, with the lost output. A server that adopts the run later finds the
/// record and no output.
pub(super) fn empty_spool(folder: &RunFolder, spool: &File, exit: &ExitRecord) -> io::Result<()> {
    // First, because it frees the space for the record.
    spool.set_len(0)?;
    folder.write_exit(exit)
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
        for part in ["17", "limits.agent_processes (10)", "could not terminate 1 process of the run"] {
            assert!(error.text.contains(part), "{}", error.text);
        }
    }

    #[test]
    fn output_that_could_not_be_kept_is_told_with_its_size_and_its_cause() {
        let unkept =
            |disk_full| Unkept { bytes: 70_000, cause: RunFailure { text: "no room".into(), disk_full } };
        for (disk_full, code, recoverable) in [(true, "storage_full", true), (false, "output_lost", false)] {
            let exit = ExitRecord { code: Some(0), unkept: Some(unkept(disk_full)), ..ExitRecord::default() };
            let end = run_end(exit, String::new());
            let error = end.error.unwrap();
            assert_eq!((error.code.as_deref(), error.recoverable), (Some(code), recoverable));
            assert!(error.text.contains("70000 bytes") && error.text.contains("no room"), "{}", error.text);
            assert_eq!(end.disk_full.as_deref(), Some("no room"), "its exit code says nothing");
        }
    }

    #[test]
    fn what_was_read_and_not_saved_before_the_server_died_is_lost_too() {
        let ended = ExitRecord { code: Some(0), ..ExitRecord::default() };
        assert_eq!(emptied(ended.clone(), 900, 300, SpaceWait::Continues), None, "its output fits");
        let exit = emptied(ended, 900, 300, SpaceWait::Over).unwrap();
        let lost = |kept| {
            let error = run_end(with_unsaved(exit.clone(), kept), String::new()).error.unwrap();
            assert_eq!((error.code.as_deref(), error.recoverable), (Some("storage_full"), true));
            error.text
        };
        assert!(lost(300).contains(" 600 bytes of the agent's output"), "{}", lost(300));
        assert!(lost(100).contains(" 800 bytes of the agent's output"), "{}", lost(100));
        let all_read =
            emptied(ExitRecord { code: Some(0), ..ExitRecord::default() }, 900, 900, SpaceWait::Over)
                .unwrap();
        assert_eq!(run_end(with_unsaved(all_read, 900), String::new()).error, None, "nothing is lost");
    }
}
