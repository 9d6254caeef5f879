//! What must happen to the processes of a real agent while one of its tools runs: the stories. Some agents start their
//! tools in their own sessions, and some are a launcher that starts the real program. So ending one process is not
//! enough.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::{TestServer, no_process_is_left, processes_of_agent};
use crate::model_server::{ModelServer, Reply};
use crate::real_agents::{Agent, SLOW, ended};

/// An agent whose tool is running, and would run for a long time.
struct Busy {
    server: TestServer,
    _home: tempfile::TempDir,
    _model: ModelServer,
    id: String,
    /// How long the tool sleeps. The number is unique on this machine, so it identifies the tool's processes.
    number: String,
}

impl Busy {
    async fn start(agent: &Agent) -> Self {
        // The number is needed before the model is started, so it is taken from the port of another server.
        let unique = ModelServer::start([]);
        let number = format!("300.{}", unique.url().rsplit(':').next().unwrap());
        // Some agents refuse to run a plain `sleep`.
        let (tool, input) = (agent.shell)(&format!("env sleep {number}"));
        let call = Reply::tool_call(tool, input).saying(["I wait."]);
        let model = ModelServer::start([call, Reply::text(["Still waiting."]).then_silence()]);
        let (server, home) = agent.start(&model);
        let id = server.launch_as(agent.kind, "Wait").await;
        let busy = Self { server, _home: home, _model: model, id, number };
        tokio::time::timeout(SLOW, busy.until_the_tool_runs()).await.expect("the tool is started");
        busy
    }

    async fn until_the_tool_runs(&self) {
        let mut allowed = false;
        while !self.processes().iter().any(|command| command.starts_with("sleep ")) {
            let events = self.server.events(&self.id).await;
            let question = events.iter().find(|event| event["metadata"]["eventType"] == "permission_request");
            if let Some(question) = question.filter(|_| !allowed) {
                self.allow(&question["content"]).await;
                allowed = true;
            }
            let agent = self.server.get(&format!("/api/agents/{}", self.id)).await;
            assert!(agent["endedAt"].is_null(), "it has ended without its tool: {agent} {events:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn allow(&self, question: &Value) {
        let options = question["options"].as_array().unwrap();
        let allow = options.iter().find(|option| option["kind"] == "allow_once").expect("it can be allowed");
        let path = format!("/api/agents/{}/permissions/{}", self.id, question["requestId"].as_str().unwrap());
        let (status, answer) = self.server.post(&path, &json!({ "optionId": allow["optionId"] })).await;
        assert_eq!(status, 200, "{answer}");
    }

    /// The commands of all processes that contain the number: the tool and the shells around it.
    fn processes(&self) -> Vec<String> {
        let commands = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
            let command = std::fs::read(entry.path().join("cmdline")).ok()?;
            Some(String::from_utf8_lossy(&command).replace('\0', " "))
        });
        commands.filter(|command| command.contains(&self.number)).collect()
    }

    async fn cancel(&self) {
        self.server.post(&format!("/api/agents/{}/cancel", self.id), &json!({})).await;
        self.ends("cancelled").await;
    }

    async fn ends(&self, status: &str) {
        let agent = ended(&self.server, &self.id).await;
        assert_eq!(agent["status"], status, "{agent}");
        assert_eq!(self.processes(), [""; 0], "the tool has ended with its agent");
        no_process_is_left(&self.id).await;
    }
}

impl Agent {
    pub(crate) async fn is_cancelled_while_its_tool_runs_and_leaves_no_process(&self) {
        Busy::start(self).await.cancel().await;
    }

    pub(crate) async fn is_cancelled_by_the_next_server_and_leaves_no_process(&self) {
        let mut busy = Busy::start(self).await;
        busy.server.kill_9();
        busy.server.start_again();
        let agent = busy.server.get(&format!("/api/agents/{}", busy.id)).await;
        assert_eq!((&agent["status"], busy.processes().is_empty()), (&json!("running"), false), "{agent}");
        busy.cancel().await;
    }

    /// As if the system were out of memory: the first process is killed, but not its children.
    pub(crate) async fn loses_its_launcher_and_leaves_no_process(&self) {
        let busy = Busy::start(self).await;
        kill_process(launcher(&busy.id), Signal::KILL).unwrap();
        busy.ends("failed").await;
    }
}

/// The first process of an agent, without the server's own processes.
fn launcher(id: &str) -> Pid {
    let read = |pid: &str, file: &str| {
        let text = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        String::from_utf8_lossy(&text).replace('\0', " ")
    };
    let (servers, own): (Vec<_>, Vec<_>) = processes_of_agent(id).into_iter().partition(|pid| {
        let command = read(pid, "cmdline");
        command.starts_with("tokenrail ") || command.contains(" supervise ")
    });
    // `pid (name) state parent …`
    let parent = |pid: &str| {
        let stat = read(pid, "stat");
        stat.rsplit(") ").next().unwrap().split(' ').nth(1).unwrap_or_default().to_owned()
    };
    let started = own.iter().filter(|pid| servers.contains(&parent(pid)));
    let first = started.map(|pid| pid.parse().unwrap()).min().expect("it has a first process");
    assert!(1 < own.len(), "it has started something");
    Pid::from_raw(first).unwrap()
}
