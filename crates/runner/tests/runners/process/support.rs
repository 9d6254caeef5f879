//! A bench of run folders, and helper functions for its tests.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokenrail_domain::{AgentId, Timestamp, TurnNumber};
use tokenrail_ports::{
    Adoption, IAgentRun, IAgentRunner, Line, OutputLine, RunEnd, RunOutput, RunnerError, TurnOrder,
};
use tokenrail_runner::{
    ProcessConfig, ProcessLimits, ProcessRunner, RunFolders, RunWatcher, SupervisorProgram, WatchLimits,
};

/// The longest wait in these tests. Reaching it is a failure.
const PATIENCE: Duration = Duration::from_secs(30);

/// A place in which agents run.
pub(crate) struct Bench {
    pub(crate) folder: TempDir,
    pub(crate) config: ProcessConfig,
    pub(crate) order: TurnOrder,
}

impl Bench {
    /// A bench whose agent is this shell script.
    pub(crate) fn new(script: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let program = folder.path().join("agent");
        write_script(&program, script);
        let cwd = folder.path().join("work");
        fs::create_dir(&cwd).unwrap();
        let limits = ProcessLimits {
            cancel_grace_ms: 400,
            leftover_grace_ms: 200,
            kill_grace_ms: 10_000,
            ..ProcessLimits::default()
        };
        let config = ProcessConfig {
            supervisor: SupervisorProgram::own(supervisor()),
            runs: folder.path().join("runs"),
            program: program.to_str().unwrap().to_owned(),
            args: Vec::new(),
            resume_args: vec!["--resume".to_owned(), "{session}".to_owned()],
            model_args: vec!["--model".to_owned(), "{model}".to_owned()],
            env: BTreeMap::new(),
            pass_env: vec!["PATH".to_owned()],
            interrupt: false,
            converse: None,
            limits,
        };
        let order = TurnOrder {
            agent: AgentId::new(Timestamp(1_795_299_000_000), rand_like(folder.path())),
            run: TurnNumber::FIRST,
            prompt: "hello".to_owned(),
            model: None,
            cwd,
            session: None,
            options: None,
            images: Vec::new(),
            history: Vec::new(),
        };
        Self { folder, config, order }
    }

    /// Replaces the agent's program.
    pub(crate) fn script(&self, script: &str) {
        write_script(Path::new(&self.config.program), script);
    }

    /// Runs have no space for output any more. Nothing can read such output: `/dev/full` has no end.
    pub(crate) fn fill_disk_for_output(&mut self) {
        let program = self.folder.path().join("supervisor-with-a-full-disk");
        let real = supervisor();
        let script = format!("ln -sf /dev/full \"$2/stdout\"\nexec {} \"$@\"", real.display());
        write_script(&program, &script);
        self.config.supervisor = SupervisorProgram::own(program);
    }

    pub(crate) fn runner(&self) -> ProcessRunner {
        ProcessRunner::new(self.config.clone(), RunWatcher::new(WatchLimits::default()).unwrap()).unwrap()
    }

    pub(crate) fn runs(&self) -> RunFolders {
        RunFolders::new(self.config.runs.clone(), self.config.limits.kill_grace_ms)
    }

    pub(crate) async fn start(&self) -> Box<dyn IAgentRun> {
        self.runner().start(&self.order).await.unwrap()
    }

    /// Starts the run and waits for its first line.
    pub(crate) async fn start_and_hear(&self, line: &str) -> Box<dyn IAgentRun> {
        let mut run = self.start().await;
        assert_eq!(first(&mut run).await, [line]);
        run
    }

    pub(crate) async fn refusal(&self) -> RunnerError {
        self.runner().start(&self.order).await.err().expect("it is refused")
    }

    /// The run that another server, started after the first one, adopts.
    pub(crate) async fn adopt(&self) -> Option<Box<dyn IAgentRun>> {
        match self.runner().adopt(&self.order, 0).await.unwrap() {
            Adoption::Run(run) => Some(run),
            Adoption::Gone => None,
        }
    }

    pub(crate) fn run_folder(&self) -> PathBuf {
        self.run_folder_of(self.order.run.0)
    }

    pub(crate) fn run_folder_of(&self, turn: u32) -> PathBuf {
        self.config.runs.join(format!("{}-{turn}", self.order.agent))
    }

    /// A file in the agent's working folder.
    pub(crate) fn work(&self, name: &str) -> PathBuf {
        self.order.cwd.join(name)
    }

    /// The supervisor's process id.
    pub(crate) fn supervisor_pid(&self) -> i32 {
        let text = fs::read_to_string(self.run_folder().join("supervisor.json")).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        value["pid"].as_i64().unwrap().try_into().unwrap()
    }

    /// The ids and command lines of the running processes of the run. They are found by their environment, command line
    /// or folder.
    pub(crate) fn processes(&self) -> Vec<(i32, String)> {
        let place = self.folder.path().to_str().unwrap().as_bytes().to_vec();
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let path = entry.path();
            let environ = fs::read(path.join("environ")).unwrap_or_default();
            let mut text = fs::read(path.join("cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&text).replace('\0', " ");
            let marker = format!("TOKENRAIL_RUN={}-{}", self.order.agent, self.order.run);
            text.extend(fs::read_link(path.join("cwd")).unwrap_or_default().to_str().unwrap_or("").bytes());
            let of_run = contains(&environ, marker.as_bytes()) || contains(&text, &place);
            let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
            if let (true, Some(pid)) = (of_run && !command.is_empty(), pid) {
                found.push((pid, command));
            }
        }
        found
    }

    /// Waits until no process of the run is left. A supervisor, for example, may still be about to exit.
    pub(crate) async fn assert_nothing_left(&self) {
        until("no process of the run is left", || self.processes().is_empty()).await;
    }
}

impl Drop for Bench {
    /// A test that fails must leave no processes behind either.
    fn drop(&mut self) {
        for (pid, _) in self.processes() {
            let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
        }
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// Ten bytes that differ between benches.
fn rand_like(path: &Path) -> [u8; 10] {
    let name = path.file_name().unwrap().as_encoded_bytes();
    std::array::from_fn(|index| name[name.len() - 1 - index % name.len()])
}

/// Writes a shell script that can be run.
///
/// The kernel refuses to run a file that a process has open for writing (`ETXTBSY`), and a child that another test
/// starts at that moment would inherit the open file. So another process writes it, and has ended afterwards.
fn write_script(path: &Path, script: &str) {
    let mut tee = Command::new("tee").arg(path).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    // The pipe is closed at the end of this statement.
    tee.stdin.take().unwrap().write_all(format!("#!/bin/sh\n{script}\n").as_bytes()).unwrap();
    assert!(tee.wait().unwrap().success(), "{}", path.display());
    fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
}

fn supervisor() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let built = tests.parent().and_then(Path::parent).unwrap().join("examples/supervise");
    assert!(built.exists(), "build it first: cargo build -p tokenrail-runner --example supervise");
    built
}

/// Waits until the condition holds.
pub(crate) async fn until(what: &str, condition: impl Fn() -> bool) {
    let waited = tokio::time::timeout(PATIENCE, async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    assert!(waited.await.is_ok(), "{what}");
}

pub(crate) async fn next(run: &mut Box<dyn IAgentRun>) -> RunOutput {
    tokio::time::timeout(PATIENCE, run.next()).await.expect("the run goes on").unwrap()
}

/// Reads the run to its end.
pub(crate) async fn rest(run: &mut Box<dyn IAgentRun>) -> (Vec<OutputLine>, RunEnd) {
    let mut lines = Vec::new();
    loop {
        match next(run).await {
            RunOutput::Lines(more) => {
                assert!(!more.is_empty());
                lines.extend(more);
            }
            RunOutput::Progress { .. } => {}
            RunOutput::Ended(end) => return (lines, end),
        }
    }
}

/// Waits for the first lines.
pub(crate) async fn first(run: &mut Box<dyn IAgentRun>) -> Vec<String> {
    loop {
        match next(run).await {
            RunOutput::Lines(lines) => return texts(&lines),
            RunOutput::Progress { .. } => {}
            RunOutput::Ended(end) => panic!("it has ended: {end:?}"),
        }
    }
}

/// The texts of the lines, which must all be whole.
pub(crate) fn texts(lines: &[OutputLine]) -> Vec<String> {
    let text = |line: &OutputLine| match &line.line {
        Line::Whole(text) => String::from_utf8(text.to_vec()).unwrap(),
        other => panic!("not whole: {other:?}"),
    };
    lines.iter().map(text).collect()
}
