//! Runs that nobody will read any more: they are ended, and what they have left on disk is removed.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use tokenrail_domain::{AgentId, TurnNumber};

use super::further_turn::run_of;
use super::proc::kill_marked;
use super::{RunFolder, SupervisorRecord};
use crate::converse::FurtherTurn;

/// What the name of a folder among the run folders says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Leftover {
    agent: AgentId,
    turn: TurnNumber,
    /// It is only what was kept of a run.
    kept: bool,
}

impl Leftover {
    fn parse(name: &str) -> Option<Self> {
        let (run, kept) = name.strip_suffix(RunFolder::KEPT).map_or((name, false), |run| (run, true));
        // The agent's id has hyphens itself.
        let (agent, turn) = run.rsplit_once('-')?;
        Some(Self { agent: agent.parse().ok()?, turn: TurnNumber(turn.parse().ok()?), kept })
    }
}

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

/// The folders of an agent's runs, without what was kept of earlier ones. It blocks.
pub(super) fn folders_of(runs: &Path, agent: AgentId) -> io::Result<Vec<RunFolder>> {
    let all = all(runs)?.into_iter();
    Ok(all.filter(|(_, run)| run.agent == agent && !run.kept).map(|(folder, _)| folder).collect())
}

fn all(runs: &Path) -> io::Result<Vec<(RunFolder, Leftover)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(runs)? {
        let entry = entry?;
        if let Some(run) = entry.file_name().to_str().and_then(Leftover::parse) {
            found.push((RunFolder::at(&entry.path()), run));
        }
    }
    Ok(found)
}

fn remove_where(
    runs: &Path,
    kill_grace_ms: u64,
    chosen: impl Fn(&RunFolder, &Leftover) -> io::Result<bool>,
) -> io::Result<u32> {
    let mut removed = 0;
    for (folder, run) in all(runs)? {
        if !chosen(&folder, &run)? {
            continue;
        }
        if !run.kept {
            end(&folder, kill_grace_ms)?;
            tracing::info!(agent = %run.agent, turn = %run.turn, "a run that nobody reads any more is removed");
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
        let text = format!("{left} processes of the run {} cannot be ended", folder.name());
        return Err(io::Error::new(ErrorKind::TimedOut, text));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_names_of_runs_are_read() {
        let agent = "0199aa00-0000-7000-8000-000000000001";
        let run = |kept| Leftover { agent: agent.parse().unwrap(), turn: TurnNumber(12), kept };
        assert_eq!(Leftover::parse(&format!("{agent}-12")), Some(run(false)));
        assert_eq!(Leftover::parse(&format!("{agent}-12.kept")), Some(run(true)));
        for name in
            [agent.to_owned(), format!("{agent}-"), format!("{agent}-x"), "notes-1".into(), "-1".into()]
        {
            assert_eq!(Leftover::parse(&name), None, "{name}");
        }
    }
}
