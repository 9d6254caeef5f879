//! A reader that lets `tokenrail tail` read.

use std::process::Stdio;

use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use crate::follower::Follower;
use crate::harness::program;

/// Reads until `most` more events have come. Returns false if the command ended before that. It waits by itself
/// until its server is back, so its silence says nothing.
pub(super) async fn read_by_tail(follower: &mut Follower, most: usize) -> bool {
    let until = follower.seen.len() + most;
    let home = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(program());
    // Not the whole id: a command line that contains it counts as a process of the agent.
    let id = follower.id.rsplit('-').next().expect("an id");
    command.args(["tail", id, "--keep", "--json", "--since", &follower.seen.len().to_string()]);
    command.args(["--url", &format!("http://{}", follower.place.authority)]);
    command.env("TOKENRAIL_TOKEN", &follower.place.token);
    // Nobody's configuration.
    command.current_dir(home.path()).env("HOME", home.path());
    command.env_remove("XDG_CONFIG_HOME").env_remove("XDG_DATA_HOME");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let mut process = command.spawn().expect("it starts");
    let mut lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
    while follower.seen.len() < until {
        let Some(line) = lines.next_line().await.expect("text") else { return false };
        let event: Box<RawValue> = serde_json::from_str(&line).expect("JSON");
        let before = follower.seen.len();
        follower.apply(&event);
        assert!(before < follower.seen.len(), "it is printed twice: {event}");
    }
    true
}
