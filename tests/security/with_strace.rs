//! S13: which programs the server runs. Needs strace, whose path is in `TOKENRAIL_TEST_STRACE`.

use std::collections::BTreeSet;

use serde_json::json;

use crate::harness::{fake_agent, program};
use crate::started::Started;

#[tokio::test]
async fn s13_a_launch_runs_the_configured_program_and_never_a_shell() {
    let strace = std::env::var("TOKENRAIL_TEST_STRACE").expect("cargo xtask test sets it");
    let place = tempfile::tempdir().unwrap();
    let trace = place.path().join("trace");
    // Names that a shell would split or run.
    let folder = place.path().join("a b;touch c$(touch d)`touch e`");
    std::fs::create_dir(&folder).unwrap();
    let config = format!(
        "[agents.fake]\nprogram = \"{}\"\nargs = [\"-p\", \"$(touch f)\", \"a b; touch g\"]\ncwd_roots = [\"{}\"]\n",
        fake_agent().display(),
        place.path().display()
    );
    let trace_file = trace.to_str().unwrap();
    let under = [strace.as_str(), "-f", "-qq", "-e", "trace=execve,execveat", "-s", "4096", "-o", trace_file];
    let started = Started::start(&config, &under, &[]);
    let server = &started.server;
    let types = server.get("/api/agent-types").await;
    assert!(types.to_string().contains("Fake Agent"), "its version was asked for: {types}");
    for prompt in ["{}", "; touch h", "$(touch i) `touch j` && touch k | sh -c 'touch l'", "-p --help"] {
        let body = json!({ "type": "fake", "prompt": prompt, "model": "m", "sessionId": "$(touch;m)", "cwd": folder });
        let (status, agent) = server.post("/api/agents", &body).await;
        assert_eq!(status, 201, "{agent}");
        let id = agent["agentId"].as_str().unwrap();
        server.wait_until(id, |agent| agent["endedAt"].is_string()).await;
    }
    let left: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.is_empty(), "nothing was touched: {left:?}");

    let text = std::fs::read_to_string(&trace).unwrap();
    let calls: Vec<&str> = text.lines().filter(|line| line.contains("execve")).collect();
    let programs: BTreeSet<String> =
        calls.iter().map(|call| call.split('"').nth(1).unwrap().to_owned()).collect();
    let supervisor = program().with_file_name("tokenrail-supervisor");
    let known = [program(), supervisor, fake_agent()].map(|path| path.to_string_lossy().into_owned());
    let mut expected: BTreeSet<String> = known.into_iter().collect();
    expected.insert("/proc/self/exe".to_owned());
    assert_eq!(programs, expected, "{text}");
    // The server, which restarts itself with its memory settings (2). For each launch: the supervisor, the stage before
    // the agent, and the agent. Two version checks: of the supervisor and of the agent.
    assert_eq!(calls.len(), 2 + 4 * 3 + 2, "{text}");
    assert!(
        !text.contains("touch h") && !text.contains("touch i"),
        "no prompt stands in any argument: {text}"
    );
    assert!(text.contains("\"$(touch f)\", \"a b; touch g\""), "each argument is one: {text}");
}
