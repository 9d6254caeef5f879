//! What an agent has changed in a git repository: over the API and with the command.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{TestServer, write_script};

/// The lines of an agent that edits a file with a tool. The prompt says what else it does.
const AGENT: &str = r#"#!/bin/sh
read -r script
eval "$script"
say() { printf '%s\n' "$1"; }
say '{"type":"system","subtype":"init","session_id":"s","tools":[],"model":"m"}'
say '{"type":"assistant","message":{"id":"m1","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":"t1","name":"Edit","input":{"file_path":"'"$PWD"'/a.txt","old_string":"two","new_string":"TWO"}}]},"parent_tool_use_id":null,"session_id":"s"}'
say '{"type":"user","message":{"role":"user","content":[{"tool_use_id":"t1","type":"tool_result","content":"ok","is_error":false}]},"parent_tool_use_id":null,"session_id":"s"}'
say '{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s","duration_ms":1,"num_turns":1,"usage":{}}'
"#;

/// A server whose agents work in a repository and do what the shell commands of their prompts say.
pub(crate) struct InRepository {
    pub(crate) server: TestServer,
    root: TempDir,
}

impl InRepository {
    /// `None` if git is missing.
    #[expect(clippy::print_stderr, reason = "says why a test did not run")]
    pub(crate) fn start() -> Option<Self> {
        if Command::new("git").arg("--version").output().is_err() {
            eprintln!("NOT RUN: git is missing");
            return None;
        }
        let root = tempfile::tempdir().unwrap();
        let agent = root.path().join("agent");
        write_script(&agent, AGENT);
        let (program, folder) = (agent.display(), root.path().display());
        let config = format!(
            "[server]\ndefault_agent = \"sh\"\n[agents.sh]\nprogram = \"{program}\"\nformat = \"claude\"\n\
             pass_env = [\"PATH\"]\ncwd_roots = [\"{folder}\"]\n"
        );
        let server = TestServer::start_with(&config);
        std::fs::create_dir(root.path().join("work")).unwrap();
        let this = Self { server, root };
        this.git(&["init", "-q"]);
        this.write("a.txt", "one\ntwo\nthree\n");
        this.git(&["add", "."]);
        this.git(&["commit", "-q", "-m", "1"]);
        Some(this)
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap().join("work")
    }

    fn write(&self, path: &str, text: &str) {
        std::fs::write(self.folder().join(path), text).unwrap();
    }

    fn git(&self, args: &[&str]) -> String {
        git_in(&self.folder(), args)
    }

    /// Runs an agent to its end. Returns its id.
    pub(crate) async fn run(&self, script: &str) -> String {
        let body = json!({ "prompt": script, "cwd": self.folder() });
        let (status, agent) = self.server.post("/api/agents", &body).await;
        assert_eq!(status, 201, "{agent}");
        let id = agent["agentId"].as_str().unwrap().to_owned();
        self.server.wait_for_status(&id, "completed").await;
        id
    }

    fn command(&self, args: &[&str]) -> Output {
        self.server.command(args).output().unwrap()
    }
}

fn git_in(folder: &Path, args: &[&str]) -> String {
    let fixed = ["-c", "user.name=Test", "-c", "user.email=test@localhost"];
    let said = Command::new("git").args(fixed).args(args).current_dir(folder).output().unwrap();
    assert!(said.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&said.stderr));
    String::from_utf8(said.stdout).unwrap().trim().to_owned()
}

fn paths(changes: &Value) -> Vec<(&str, &str)> {
    let files = changes["files"].as_array().unwrap();
    files.iter().map(|file| (file["path"].as_str().unwrap(), file["status"].as_str().unwrap())).collect()
}

#[tokio::test]
async fn what_an_agent_has_committed_changed_and_created_is_listed_and_can_be_applied() {
    let Some(lab) = InRepository::start() else { return };
    let base = lab.git(&["rev-parse", "HEAD"]);
    lab.git(&["clone", "-q", ".", "../clone"]);
    let commit = "git -c user.name=T -c user.email=t@localhost commit -q -m 2";
    let script =
        format!("echo 4 > b.txt; git add b.txt; {commit}; sed -i s/two/TWO/ a.txt; echo 5 > 'new file.txt'");
    let id = lab.run(&script).await;
    let changes = lab.server.get(&format!("/api/agents/{id}/changes")).await;
    assert_eq!(
        (&changes["source"], &changes["base"], &changes["turn"]),
        (&json!("git"), &json!(base), &json!(1))
    );
    assert_eq!(paths(&changes), [("a.txt", "modified"), ("b.txt", "added"), ("new file.txt", "untracked")]);
    assert_eq!((&changes["files"][0]["added"], &changes["files"][0]["removed"]), (&json!(1), &json!(1)));

    let listed = lab.command(&["changes", &id]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains("modified") && listed.contains("  a.txt\n"), "{listed}");
    assert!(listed.contains(&format!("3 files, +3 -1 since {}", &base[..12])), "{listed}");

    let patch = lab.command(&["changes", "latest", "--patch"]);
    assert!(patch.status.success(), "{}", String::from_utf8_lossy(&patch.stderr));
    std::fs::write(lab.root.path().join("patch"), patch.stdout).unwrap();
    let clone = lab.root.path().join("clone");
    git_in(&clone, &["apply", "../patch"]);
    for file in ["a.txt", "b.txt", "new file.txt"] {
        assert_eq!(std::fs::read(clone.join(file)).unwrap(), std::fs::read(lab.folder().join(file)).unwrap());
    }
}

#[tokio::test]
async fn each_turn_has_its_own_beginning_which_survives_a_restart() {
    let Some(mut lab) = InRepository::start() else { return };
    let commit = "git -c user.name=T -c user.email=t@localhost commit -q -m";
    let id = lab.run(&format!("echo 1 > first; git add .; {commit} first")).await;
    let second = lab.git(&["rev-parse", "HEAD"]);
    let body = json!({ "content": "echo 2 > second" });
    assert_eq!(lab.server.post(&format!("/api/agents/{id}/messages"), &body).await.0, 202);
    lab.server.wait_until(&id, |agent| agent["turn"] == 2 && agent["status"] == "completed").await;
    lab.server.kill_and_start_again();
    let all = lab.server.get(&format!("/api/agents/{id}/changes")).await;
    assert_eq!(paths(&all), [("first", "added"), ("second", "untracked")]);
    let last = lab.server.get(&format!("/api/agents/{id}/changes?turn=2")).await;
    assert_eq!((&last["base"], paths(&last)), (&json!(second), vec![("second", "untracked")]));
}

#[tokio::test]
async fn without_a_repository_the_command_says_why() {
    let server = TestServer::start();
    let id = server.launch_to_completion(&json!({ "deltas": 1 })).await;
    let changes = server.get(&format!("/api/agents/{id}/changes")).await;
    assert_eq!((&changes["source"], &changes["reason"]), (&json!("none"), &json!("no_commit")));
    for args in [&["changes", &id][..], &["changes", &id, "--patch"]] {
        let said = server.command(args).output().unwrap();
        let error = String::from_utf8(said.stderr).unwrap();
        assert_eq!(said.status.code(), Some(1), "{error}");
        assert!(
            error.contains("not in a git repository") && error.contains("changes_unavailable"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn an_agent_whose_folder_or_commit_is_gone_is_reported_as_such() {
    let Some(lab) = InRepository::start() else { return };
    let id = lab.run("true").await;
    let deleted =
        lab.server.request(reqwest::Method::DELETE, &format!("/api/agents/{id}")).send().await.unwrap();
    assert_eq!(deleted.status(), 204);
    lab.write("later.txt", "1\n");
    let path = format!("/api/agents/{id}/changes");
    assert_eq!(paths(&lab.server.get(&path).await), [("later.txt", "untracked")], "also of a deleted agent");
    std::fs::remove_dir_all(lab.folder().join(".git")).unwrap();
    assert_eq!(lab.server.get(&path).await["reason"], "no_repository");
    lab.git(&["init", "-q"]);
    assert_eq!(lab.server.get(&path).await["reason"], "commit_gone");
    std::fs::remove_dir_all(lab.folder()).unwrap();
    assert_eq!(lab.server.get(&path).await["reason"], "no_repository");
}
