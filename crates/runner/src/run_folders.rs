//! Runs that nobody will read any more: they are ended, and what they have left on disk is removed.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::path::Path;

use tokenrail_domain::{AgentId, TurnNumber};

use crate::run_folder::{FurtherTurn, RunFolder, RunName, SupervisorRecord, all_runs, kill_marked, run_of};

/// Ends and removes all runs but those in `keep`; gives how many there were. It blocks.
pub(super) fn sweep(
    runs: &Path,
    keep: &BTreeSet<(AgentId, TurnNumber)>,
    kill_grace_ms: u64,
) -> io::Result<u32> {
    remove_where(runs, kill_grace_ms, |folder, run| {
        if run.kept || keep.contains(&(run.agent, run.turn)) {
            return Ok(false);
        }
        let further: Option<FurtherTurn> = folder.read(RunFolder::FURTHER)?;
        let goes_on = |further: FurtherTurn| {
            keep.iter().any(|(agent, turn)| *agent == run.agent && u64::from(turn.0) == further.turn)
        };
        Ok(!further.is_some_and(goes_on))
    })
}

/// Ends a run and keeps its spool. It blocks.
pub(super) fn end_one(runs: &Path, agent: AgentId, turn: TurnNumber, kill_grace_ms: u64) -> io::Result<()> {
    let mut folder = RunFolder::at(&runs.join(format!("{agent}-{turn}")));
    if !folder.path().try_exists()? {
        let Some((of_earlier, _)) = run_of(runs, agent, turn)? else { return Ok(()) };
        folder = of_earlier;
    }
    end(&folder, kill_grace_ms)?;
    folder.keep_spool()
}

/// Ends and removes all that there is of an agent. It blocks.
pub(super) fn forget(runs: &Path, agent: AgentId, kill_grace_ms: u64) -> io::Result<u32> {
    remove_where(runs, kill_grace_ms, |_, run| Ok(run.agent == agent))
}

fn remove_where(
    runs: &Path,
    kill_grace_ms: u64,
    chosen: impl Fn(&RunFolder, &RunName) -> io::Result<bool>,
) -> io::Result<u32> {
    let mut removed = 0;
    for (folder, run) in all_runs(runs)? {
        if !chosen(&folder, &run)? {
            continue;
        }
        if !run.kept {
            end(&folder, kill_grace_ms)?;
            tracing::info!(agent = %run.agent, turn = %run.turn, "removing an abandoned run");
        }
        folder.remove()?;
        removed += 1;
    }
    Ok(removed)
}

/// Kills the supervisor with all that descends from it, and then whatever else the agent has started.
fn end(folder: &RunFolder, kill_grace_ms: u64) -> io::Result<()> {
    // A supervisor that is only slow starts no agent any more.
    folder.forget_order()?;
    let supervisor: Option<SupervisorRecord> = folder.read(RunFolder::SUPERVISOR)?;
    if let Some(supervisor) = supervisor {
        supervisor.kill_with_descendants()?;
    }
    let (_, left) = kill_marked(&folder.marker(), kill_grace_ms)?;
    if 0 < left {
        let text = format!("cannot terminate {left} processes of the run {}", folder.name());
        return Err(io::Error::new(ErrorKind::TimedOut, text));
    }
    Ok(())
}
