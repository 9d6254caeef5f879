//! The folders in which agents may work without a configuration.

use std::path::Path;

use reqwest::StatusCode;
use serde_json::json;

use crate::harness::{TestServer, fake_config};

/// What a newcomer does first. The folder is allowed for the user who runs the command, and for nobody's request.
#[tokio::test]
async fn run_allows_the_folder_that_its_user_names() {
    let server = TestServer::start();
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().canonicalize().unwrap().join("project");
    std::fs::create_dir(&folder).unwrap();

    let asked = json!({ "type": "fake", "prompt": "{}", "cwd": folder });
    let (status, problem) = server.post("/api/agents", &asked).await;
    assert_eq!((status.as_u16(), &problem["code"]), (422, &json!("cwd_not_allowed")));
    assert!(problem["detail"].as_str().unwrap().contains("tokenrail allow"), "{problem}");

    let (said, remarked) = run_in(&server, &folder);
    assert!(said.contains('0'), "{said}");
    let allowed = format!("agents may now work in {}", folder.display());
    assert!(remarked.contains(&allowed), "{remarked}");
    let (_, remarked) = run_in(&server, &folder);
    assert!(!remarked.contains("may now work"), "only once: {remarked}");
    let agents = server.get("/api/agents").await;
    assert_eq!(agents[0]["cwd"], json!(folder), "{agents}");

    let listed = server.command(&["allow"]).output().unwrap();
    assert_eq!(String::from_utf8(listed.stdout).unwrap().trim(), folder.to_str().unwrap());
    // From now on, other clients can launch agents there too, but not beside it.
    let (status, launched) = server.post("/api/agents", &asked).await;
    assert_eq!(status, StatusCode::CREATED, "{launched}");
    let beside = json!({ "type": "fake", "prompt": "{}", "cwd": home.path() });
    assert_eq!(server.post("/api/agents", &beside).await.0, StatusCode::UNPROCESSABLE_ENTITY);
}

/// What the configuration allows already is not recorded, so that it ends with the configuration.
#[tokio::test]
async fn run_records_no_folder_that_it_may_use_anyway() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("project");
    std::fs::create_dir(&folder).unwrap();
    let roots = format!("[agents.fake]\ncwd_roots = [{:?}]\n", root.path());
    let server = TestServer::start_with(&fake_config().replacen("[agents.fake]\n", &roots, 1));
    let (_, remarked) = run_in(&server, &folder);
    assert!(!remarked.contains("may now work"), "{remarked}");
    assert!(!server.data_dir().join("allowed-folders").exists());
}

#[tokio::test]
async fn a_folder_is_allowed_before_anything_runs_there() {
    let server = TestServer::start();
    let folder = tempfile::tempdir().unwrap();
    let allow = |path: &Path| server.command(&["allow"]).arg(path).output().unwrap();
    let none = allow(&folder.path().join("none"));
    let said = String::from_utf8(none.stderr).unwrap();
    assert!(none.status.code() == Some(1) && said.contains("cannot allow"), "{said}");
    let elsewhere =
        server.command(&["--url", "http://127.0.0.1:1", "allow"]).arg(folder.path()).output().unwrap();
    assert_eq!(elsewhere.status.code(), Some(2), "another machine has folders of its own");
    assert!(allow(folder.path()).status.success());
    let asked = json!({ "type": "fake", "prompt": "{}", "cwd": folder.path() });
    assert_eq!(server.post("/api/agents", &asked).await.0, StatusCode::CREATED);
}

/// Runs an agent in the folder. Returns what the command prints to standard output and standard error.
fn run_in(server: &TestServer, folder: &Path) -> (String, String) {
    let prompt = json!({ "deltas": 1 }).to_string();
    let output =
        server.command(&["run", "--type", "fake", "--cwd", ".", &prompt]).current_dir(folder).output();
    let output = output.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (said, remarked) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{said}{remarked}");
    (said, remarked)
}
