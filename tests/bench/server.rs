//! A real server, in its own folder on the disk of the build.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::Failure;
use crate::cores::Cores;
use crate::http::Place;

/// A folder in memory on most Linux machines.
pub(crate) const MEMORY: &str = "/dev/shm";

const REST_MAX: Duration = Duration::from_secs(10);

/// What a commit waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    Full,
    Normal,
}

impl Durability {
    pub(crate) const ALL: [Self; 2] = [Self::Full, Self::Normal];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Normal => "normal",
        }
    }
}

/// A running server. When it is dropped, it ends, and so does everything that it started.
pub(crate) struct Server {
    folder: TempDir,
    process: Child,
    /// Its output. If it were closed, the server could not print.
    _stdout: BufReader<ChildStdout>,
    pub(crate) place: Place,
}

/// The server program: `TOKENRAIL_BENCH_SERVER`, or the one beside this program.
pub(crate) fn program() -> Result<PathBuf, Failure> {
    match std::env::var_os("TOKENRAIL_BENCH_SERVER") {
        Some(path) => Ok(path.into()),
        None => beside("tokenrail"),
    }
}

/// The scripted agent.
pub(crate) fn agent_program() -> Result<PathBuf, Failure> {
    beside("fake-agent")
}

fn beside(name: &str) -> Result<PathBuf, Failure> {
    let path = std::env::current_exe()?.with_file_name(name);
    if path.exists() { Ok(path) } else { Err(format!("{} is not built", path.display()).into()) }
}

/// A folder that is removed at the end. It is not in `/tmp`, which may be in memory.
pub(crate) fn folder() -> Result<TempDir, Failure> {
    let program = std::env::current_exe()?;
    Ok(tempfile::tempdir_in(program.parent().unwrap_or(Path::new(".")))?)
}

/// The agent types of a server.
pub(crate) fn agents() -> Result<String, Failure> {
    Ok(format!("[agents.fake]\nprogram = {:?}\n", agent_program()?.to_string_lossy()))
}

/// How to start a server.
#[derive(Clone, Copy)]
pub(crate) struct Setup<'a> {
    pub(crate) durability: Durability,
    /// Additional configuration.
    pub(crate) more: &'a str,
    /// If the data are in memory, the disk does not influence the figures.
    pub(crate) in_memory: bool,
    pub(crate) cores: Option<&'a Cores>,
    /// Another server program than [`program`].
    pub(crate) program: Option<&'a Path>,
}

impl Setup<'_> {
    pub(crate) fn folder(&self) -> Result<TempDir, Failure> {
        if self.in_memory && Path::new(MEMORY).is_dir() {
            return Ok(tempfile::tempdir_in(MEMORY)?);
        }
        folder()
    }
}

impl Server {
    pub(crate) fn start(durability: Durability) -> Result<Self, Failure> {
        Self::start_with(durability, "")
    }

    /// Starts a server with additional configuration.
    pub(crate) fn start_with(durability: Durability, more: &str) -> Result<Self, Failure> {
        Self::set_up(&Setup { durability, more, in_memory: false, cores: None, program: None })
    }

    pub(crate) fn set_up(setup: &Setup<'_>) -> Result<Self, Failure> {
        let Setup { durability, more, cores, program: other, .. } = *setup;
        let config = format!("[storage]\nsynchronous = {:?}\n{}{more}", durability.as_str(), agents()?);
        let program = other.map_or_else(program, |other| Ok(other.to_owned()))?;
        Self::serve_by(&program, setup.folder()?, &config, cores)
    }

    /// Starts a server with this configuration, and with its data in `data` of the folder.
    pub(crate) fn serve(folder: TempDir, config: &str, cores: Option<&Cores>) -> Result<Self, Failure> {
        Self::serve_by(&program()?, folder, config, cores)
    }

    fn serve_by(
        program: &Path,
        folder: TempDir,
        config: &str,
        cores: Option<&Cores>,
    ) -> Result<Self, Failure> {
        let file = folder.path().join("tokenrail.toml");
        std::fs::write(&file, config)?;
        let mut command = Cores::command(cores, program);
        command.args(["serve", "--log", "error", "--listen", "127.0.0.1:0", "--config"]).arg(file);
        command.arg("--data-dir").arg(folder.path().join("data"));
        Self::run(folder, command)
    }

    /// Starts a program that prints its address, as this server and its peers do.
    pub(crate) fn run(folder: TempDir, mut command: Command) -> Result<Self, Failure> {
        command.current_dir(folder.path());
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let mut stdout = BufReader::new(process.stdout.take().ok_or("the server has no output")?);
        let mut line = String::new();
        stdout.read_line(&mut line)?;
        let address = line.trim().strip_prefix("serving on http://").and_then(|address| address.parse().ok());
        let token = std::fs::read_to_string(folder.path().join("data/token")).unwrap_or_default();
        // From here on, `Drop` ends the process if something fails.
        let place = Place { address: ([127, 0, 0, 1], 0).into(), token: token.trim().to_owned() };
        let mut server = Self { folder, process, _stdout: stdout, place };
        server.place.address = address.ok_or_else(|| format!("the server said {line:?}"))?;
        Ok(server)
    }

    /// Kills the server itself, as a crash would. Its agents run on.
    pub(crate) fn kill(&mut self) -> Result<(), Failure> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// A file in the folder of the server.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Whether the prompt and the agent's first lines are saved as events. A peer saves only deltas.
    pub(crate) fn saves_what_comes_before_deltas(&self) -> bool {
        !self.place.token.is_empty()
    }

    /// Launches the scripted agent. Returns its id.
    pub(crate) async fn launch(&self, script: &Value) -> Result<String, Failure> {
        let order = json!({ "type": "fake", "prompt": script.to_string() });
        let agent = self.place.post("/api/agents", &order).await?;
        Ok(agent["agentId"].as_str().ok_or("an agent without an id")?.to_owned())
    }

    /// Waits until the agent has at least `head` events. Returns the number of the newest one.
    pub(crate) async fn wait_for_head(&self, id: &str, head: u64) -> Result<u64, Failure> {
        loop {
            let agent = self.place.get(&format!("/api/agents/{id}")).await?;
            match agent["head"].as_u64() {
                Some(newest) if head <= newest => return Ok(newest),
                _ => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    }

    /// Waits until the agent has ended. Returns the number of its newest event.
    pub(crate) async fn wait_for_end(&self, id: &str) -> Result<u64, Failure> {
        loop {
            let agent = self.place.get(&format!("/api/agents/{id}")).await?;
            match (agent["status"].as_str(), agent["head"].as_u64()) {
                (Some("completed"), Some(head)) => return Ok(head),
                (Some("initializing" | "running"), _) => tokio::time::sleep(Duration::from_millis(10)).await,
                _ => return Err(format!("the agent has ended so: {agent}").into()),
            }
        }
    }

    /// Waits until the server has finished the background work for earlier output, or up to [`REST_MAX`]. Otherwise
    /// this work would share the processor with the next flood.
    pub(crate) async fn rest(&self) -> Result<(), Failure> {
        if !self.saves_what_comes_before_deltas() {
            return Ok(());
        }
        match tokio::time::timeout(REST_MAX, self.wait_for_compaction()).await {
            Ok(rested) => rested,
            Err(_) => Ok(()),
        }
    }

    /// Waits until no batch is left that can be compacted.
    pub(crate) async fn wait_for_compaction(&self) -> Result<(), Failure> {
        let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
        let database = rusqlite::Connection::open_with_flags(self.file("data/tokenrail.db"), flags)?;
        let sql = "SELECT count(*) FROM journal WHERE codec = 1";
        while database.query_row(sql, [], |row| row.get::<_, i64>(0))? != 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// How many events an agent has besides its deltas.
    pub(crate) async fn other_events(&self) -> Result<u64, Failure> {
        let id = self.launch(&json!({ "deltas": 10 })).await?;
        Ok(self.wait_for_end(&id).await? - 10)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if matches!(self.process.try_wait(), Ok(None))
            && let Some(pid) = Pid::from_raw(self.process.id() as i32)
            && kill_process(pid, Signal::TERM).is_ok()
        {
            // Either it has ended, or nothing more can be done.
            let _ = self.process.wait();
        }
        // If a measurement failed, an agent may still wait for its gate.
        for pid in processes_of(self.folder.path()) {
            let _ = kill_process(pid, Signal::KILL);
        }
        // The end of a thousand processes would share the processor with the next measurement.
        let waited = Instant::now();
        while !processes_of(self.folder.path()).is_empty() && waited.elapsed() < REST_MAX {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// The processes whose command line or environment names the folder.
fn processes_of(folder: &Path) -> Vec<Pid> {
    let needle = folder.to_string_lossy();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let others = pids.filter(|pid| *pid != std::process::id() as i32);
    let naming = others.filter(|pid| {
        ["cmdline", "environ"].iter().any(|file| {
            let text = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            memchr::memmem::find(&text, needle.as_bytes()).is_some()
        })
    });
    naming.filter_map(Pid::from_raw).collect()
}
