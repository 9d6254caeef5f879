//! The run folders of a data folder: one for each process of an agent, named by the agent and the first run.

use std::fs;
use std::io;
use std::path::Path;

use tokenrail_domain::{AgentId, TurnNumber};

use super::converse_messages::FurtherRun;
use super::folder::RunFolder;

/// The parsed name of a run folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunName {
    pub(crate) agent: AgentId,
    /// The number of the first run in the folder.
    pub(crate) run: TurnNumber,
    /// Whether the folder holds only the kept spool of a run.
    pub(crate) kept: bool,
}

impl RunName {
    fn parse(name: &str) -> Option<Self> {
        let (name, kept) = name.strip_suffix(RunFolder::KEPT).map_or((name, false), |name| (name, true));
        // The agent's id contains hyphens too.
        let (agent, run) = name.rsplit_once('-')?;
        Some(Self { agent: agent.parse().ok()?, run: TurnNumber(run.parse().ok()?), kept })
    }
}

/// The run folders of an agent, without kept spools. Blocks.
pub(crate) fn folders_of(runs: &Path, agent: AgentId) -> io::Result<Vec<RunFolder>> {
    let all = all_runs(runs)?.into_iter();
    Ok(all.filter(|(_, run)| run.agent == agent && !run.kept).map(|(folder, _)| folder).collect())
}

/// All run folders in `runs`, including kept spools. Blocks.
pub(crate) fn all_runs(runs: &Path) -> io::Result<Vec<(RunFolder, RunName)>> {
    let mut found = Vec::new();
    let entries = match fs::read_dir(runs) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if let Some(run) = entry.file_name().to_str().and_then(RunName::parse) {
            found.push((RunFolder::at(&entry.path()), run));
        }
    }
    Ok(found)
}

/// The folder of an earlier run in whose process this run takes place, if there is one. Blocks.
pub(crate) fn run_of(
    runs: &Path,
    agent: AgentId,
    run: TurnNumber,
) -> io::Result<Option<(RunFolder, FurtherRun)>> {
    for folder in folders_of(runs, agent)? {
        let further: Option<FurtherRun> = folder.read(RunFolder::FURTHER)?;
        if let Some(further) = further.filter(|further| further.run == u64::from(run.0)) {
            return Ok(Some((folder, further)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_names_of_runs_are_read() {
        let agent = "0199aa00-0000-7000-8000-000000000001";
        let run = |kept| RunName { agent: agent.parse().unwrap(), run: TurnNumber(12), kept };
        assert_eq!(RunName::parse(&format!("{agent}-12")), Some(run(false)));
        assert_eq!(RunName::parse(&format!("{agent}-12.kept")), Some(run(true)));
        for name in
            [agent.to_owned(), format!("{agent}-"), format!("{agent}-x"), "notes-1".into(), "-1".into()]
        {
            assert_eq!(RunName::parse(&name), None, "{name}");
        }
    }
}
