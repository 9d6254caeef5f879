//! An ACP agent idles between two turns, and keeps its session.

use std::fs;

use tokenrail_domain::{SessionId, TurnNumber};
use tokenrail_ports::{IAgentRun, IAgentRunner};
use tokenrail_runner::{ConverseConfig, ProcessRunner, Protocol, Unanswered};

use super::support::{Bench, rest, texts};

/// Records the requests and answers them. The agent cannot load a session.
const SCRIPT: &str = r#"answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while read -r line; do
id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
case "$line" in
*initialize*) answer '{"protocolVersion":1,"agentInfo":{"name":"an-agent"}}' ;;
*session/new*) answer '{"sessionId":"s-'$$'"}' ;;
*session/prompt*) echo "$$ $line" >> asked; answer '{"stopReason":"end_turn"}' ;;
esac
done"#;

const IDLE: &str = r#"{"tokenrail":"rests"}"#;

fn bench() -> Bench {
    let mut bench = Bench::new(SCRIPT);
    bench.config.resume_args = Vec::new();
    bench.config.converse = Some(ConverseConfig {
        protocol: Protocol::Acp,
        permission_timeout_ms: 60_000,
        unanswered: Unanswered::Reject,
        files: false,
        idle_ms: 60_000,
    });
    bench
}

/// Prepares the bench for the next turn of its agent in this session.
fn further(bench: &mut Bench, turn: u32, session: &str) {
    bench.order.run = TurnNumber(turn);
    bench.order.prompt = "and now?".to_owned();
    bench.order.session = SessionId::new(session).ok();
}

/// The processes that got a prompt, and their sessions.
fn asked(bench: &Bench) -> Vec<(String, String)> {
    let text = fs::read_to_string(bench.work("asked")).unwrap();
    let line = |line: &str| {
        let (pid, message) = line.split_once(' ').unwrap();
        let message: serde_json::Value = serde_json::from_str(message).unwrap();
        (pid.to_owned(), message["params"]["sessionId"].as_str().unwrap().to_owned())
    };
    text.lines().map(line).collect()
}

async fn said(run: &mut Box<dyn IAgentRun>) -> Vec<String> {
    let (lines, end) = rest(run).await;
    assert!(end.idle, "{end:?}");
    let texts = texts(&lines);
    assert_eq!(texts.last().unwrap(), IDLE);
    texts
}

/// Runs a turn, after which the process is idle. Returns its session.
async fn first_turn(bench: &Bench, runner: &ProcessRunner) -> String {
    let mut run = runner.start(&bench.order).await.unwrap();
    said(&mut run).await;
    run.leave().await;
    asked(bench)[0].1.clone()
}

#[tokio::test]
async fn a_turn_follows_in_the_process_and_the_session_of_the_one_before() {
    let mut bench = bench();
    let runner = bench.runner();
    let session = first_turn(&bench, &runner).await;
    further(&mut bench, 2, &session);
    let mut run = runner.start(&bench.order).await.unwrap();
    let second = [
        r#"{"tokenrail":"further","turn":2}"#,
        r#"{"tokenrail":"agent","name":"an-agent"}"#,
        r#"{"tokenrail":"sent","id":4,"method":"session/prompt"}"#,
        r#"{"jsonrpc":"2.0","id":4,"result":{"stopReason":"end_turn"}}"#,
        IDLE,
    ];
    assert_eq!(said(&mut run).await, second);
    run.leave().await;
    let asked = asked(&bench);
    assert_eq!((asked.len(), &asked[0]), (2, &asked[1]));
    runner.dismiss(bench.order.agent).await;
    bench.assert_nothing_left().await;
}

#[tokio::test]
async fn a_session_that_has_gone_with_its_process_is_told_to_be_lost() {
    let mut bench = bench();
    let runner = bench.runner();
    let session = first_turn(&bench, &runner).await;
    runner.dismiss(bench.order.agent).await;
    further(&mut bench, 2, &session);
    let mut run = runner.start(&bench.order).await.unwrap();
    let lines = said(&mut run).await;
    let lost = format!(
        r#"{{"tokenrail":"session_lost","sessionId":"{session}","text":"the agent starts a new session"#
    );
    let lost = lines.iter().position(|line| line.starts_with(&lost)).expect("it is told");
    let new = lines.iter().position(|line| line.contains("session/new")).expect("another one begins");
    assert!(lost < new, "{lines:?}");
    let asked = asked(&bench);
    assert!(asked.len() == 2 && asked[0] != asked[1], "{asked:?}");
}
