//! Programs that follow agents with our client library, through a proxy in front of all servers.

use std::collections::BTreeMap;
use std::io::{Seek as _, Write as _};
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::PATIENCE;
use super::proxy::{Address, Proxy};
use crate::follower::Place;
use crate::real_clients::{clients, node};

/// With one WebSocket for all agents, and, as in a runtime that has no WebSocket, with an event stream for each.
const CONNECTIONS: [&str; 2] = ["web-socket", "event-streams"];

type Seen = BTreeMap<String, Vec<Value>>;

/// One program for each kind of connection. They know only the address of the proxy.
pub(super) struct Libraries {
    proxy: Proxy,
    programs: Vec<Program>,
}

impl Libraries {
    pub(super) fn start(address: Address, agents: &[String], places: &[Place]) -> Self {
        let each = agents.len().div_ceil(CONNECTIONS.len());
        let programs = agents.chunks(each).zip(CONNECTIONS).map(|(agents, connections)| {
            Program::start(&[address.url(), &places[0].token, connections], agents.to_vec())
        });
        let programs = programs.collect();
        let proxy = Proxy::start(address, places.iter().map(|place| place.authority.clone()));
        Self { proxy, programs }
    }

    /// Each program has exactly the events of its agents, and they have used each server.
    pub(super) async fn have_seen(self, journals: &BTreeMap<String, Vec<Box<RawValue>>>) {
        for program in self.programs {
            program.has_seen(journals).await;
        }
        let connections = self.proxy.connections();
        assert!(connections.iter().all(|count| 0 < *count), "{connections:?}");
    }
}

struct Program {
    agents: Vec<String>,
    /// How many events there are, once that is known.
    events: watch::Sender<usize>,
    task: JoinHandle<Seen>,
    process: Child,
}

impl Program {
    fn start(args: &[&str], agents: Vec<String>) -> Self {
        let mut command = Command::new(node(&clients()));
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/library.mjs"));
        // Not as arguments: a command line that contains an id counts as a process of the agent.
        let mut ids = tempfile::tempfile().expect("a file");
        ids.write_all(agents.join("\n").as_bytes()).and_then(|()| ids.rewind()).expect("written");
        command.args(args).stdin(ids).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().expect("Node starts");
        let lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let errors = process.stderr.take().expect("a pipe");
        let (events, known) = watch::channel(usize::MAX);
        let task = Handle::current().spawn(read(lines, errors, known));
        Self { agents, events, task, process }
    }

    async fn has_seen(mut self, journals: &BTreeMap<String, Vec<Box<RawValue>>>) {
        let events = |id: &String| -> Vec<Value> {
            journals[id].iter().map(|event| serde_json::from_str(event.get()).expect("JSON")).collect()
        };
        let expected: Seen = self.agents.iter().map(|id| (id.clone(), events(id))).collect();
        let _ = self.events.send(expected.values().map(Vec::len).sum());
        let seen = tokio::time::timeout(PATIENCE, &mut self.task).await;
        let seen = seen.expect("it comes to its end");
        let seen =
            seen.unwrap_or_else(|failed| panic!("{failed}; the program: {:?}", self.process.try_wait()));
        for (id, journal) in &expected {
            assert_eq!(seen[id], *journal, "{id}");
        }
    }
}

/// Reads until it has so many events. Each must be the next one of its agent.
async fn read(
    mut lines: Lines<BufReader<ChildStdout>>,
    mut errors: ChildStderr,
    mut events: watch::Receiver<usize>,
) -> Seen {
    let (mut seen, mut count) = (Seen::new(), 0);
    while count < *events.borrow_and_update() {
        let line = tokio::select! {
            line = lines.next_line() => line.expect("text"),
            _ = events.changed() => continue,
        };
        let Some(line) = line else {
            let mut why = String::new();
            errors.read_to_string(&mut why).await.expect("text");
            panic!("the program has ended: {why}");
        };
        let event: Value = serde_json::from_str(&line).expect("JSON");
        let id = event["agentId"].as_str().expect("an agent").to_owned();
        let of_agent = seen.entry(id).or_default();
        assert_eq!(event["sequenceNumber"], of_agent.len() + 1, "it is the next one: {event}");
        of_agent.push(event);
        count += 1;
    }
    seen
}
