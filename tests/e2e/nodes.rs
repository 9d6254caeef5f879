//! `tokenrail nodes` on a database that is not shared.

use serde_json::Value;

use crate::harness::TestServer;

fn run(server: &TestServer, args: &[&str]) -> (i32, String, String) {
    let output = server.command(args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_only_server_lists_itself_and_cannot_be_removed() {
    let server = TestServer::start();
    let (code, shown, said) = run(&server, &["nodes"]);
    assert_eq!((code, shown.lines().count()), (0, 1), "{shown}{said}");
    assert!(shown.contains("  alive  ") && shown.trim_end().ends_with("  this server"), "{shown}");
    let (_, shown, _) = run(&server, &["nodes", "--json"]);
    let node: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((&node["state"], &node["self"]), (&"alive".into(), &true.into()));
    let (code, _, said) = run(&server, &["nodes", "forget", &node["id"].to_string()]);
    assert!(code == 1 && said.contains("stop its server first (node_alive)"), "{said}");
    let (code, _, said) = run(&server, &["nodes", "forget", "other"]);
    assert!(code == 1 && said.contains("no node has the name or id \"other\""), "{said}");
}
