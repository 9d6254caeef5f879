//! S30: the API matches its own description. Needs Schemathesis, whose path is in `TOKENRAIL_TEST_SCHEMATHESIS`.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use reqwest::Method;
use serde_json::Value;

use crate::harness::TestServer;

/// The duration of the test, in seconds.
const TIME_S: &str = "90";
/// The WebSockets, which `schemathesis.toml` leaves out.
const WEB_SOCKETS: [&str; 2] = ["GET /ws", "GET /api/chat"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s30_no_request_gets_an_error_of_the_server_or_an_answer_that_is_not_documented() {
    let program = std::env::var_os("TOKENRAIL_TEST_SCHEMATHESIS").expect("cargo xtask test sets it");
    let config = "[server]\ndefault_agent = \"demo\"\n[agents.demo]\nrunner = \"replay\"\nspeed = 0\n\
                  [limits]\nlaunches_per_minute = 1000000\nfailed_logins_per_minute = 1000000\n";
    let server = TestServer::start_with(config);
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("security/schemathesis.toml");
    let mut command = Command::new(program);
    command.arg("--config-file").arg(rules).args(["run", "--checks", "all", "--no-color", "--seed", "1"]);
    // A deleted agent can still be read by its id, as the protocol reference says.
    command.args(["--exclude-checks", "use_after_free"]);
    command.args(["--max-time", TIME_S, "--header", &format!("Authorization: Bearer {}", server.token())]);
    let report = server.folder.path().join("report.xml");
    command.arg("--report-junit-path").arg(&report);
    command.arg(format!("http://{}/openapi.json", server.authority()));
    command.current_dir(server.folder.path()).stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let report = std::fs::read_to_string(report).unwrap();
    let (mut missed, tested) = (operations(&server.get("/openapi.json").await), tested(&report));
    missed.retain(|operation| !tested.contains(operation));
    assert_eq!(missed, BTreeSet::from(WEB_SOCKETS.map(str::to_owned)), "all the rest is tested: {said}");
    let metrics = server.request(Method::GET, "/metrics").send().await.unwrap().text().await.unwrap();
    for line in metrics.lines().filter(|line| line.contains("status=\"5")) {
        assert!(line.contains("status=\"503\""), "{line}");
    }
}

/// The operations of the document.
fn operations(document: &Value) -> BTreeSet<String> {
    let mut operations = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let methods = ["get", "head", "post", "put", "patch", "delete"];
        let methods = methods.iter().filter(|method| item.get(method).is_some());
        operations.extend(methods.map(|method| format!("{} {path}", method.to_uppercase())));
    }
    operations
}

/// The operations that a report in the format of `JUnit` names and does not call skipped.
fn tested(report: &str) -> BTreeSet<String> {
    let cases = report.split("<testcase ").skip(1).filter(|case| !case.contains("<skipped"));
    let names = cases.filter_map(|case| Some(case.split_once("name=\"")?.1.split_once('"')?.0.to_owned()));
    names.collect()
}
