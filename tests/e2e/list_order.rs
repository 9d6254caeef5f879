//! Users put order into the list of agents: they rename, pin and archive agents.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::TestServer;

fn run(server: &TestServer, args: &[&str]) -> (i32, String, String) {
    let output = server.command(args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// The ids that a command lists.
fn listed(server: &TestServer, args: &[&str]) -> Vec<String> {
    let (code, shown, said) = run(server, args);
    assert_eq!(code, 0, "{said}");
    shown.lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_are_renamed_pinned_and_archived_on_the_command_line() {
    let server = TestServer::start();
    let one = server.launch_to_completion(&json!({ "say": ["one"] })).await;
    let two = server.launch_to_completion(&json!({ "say": ["two"] })).await;

    let (code, shown, said) = run(&server, &["rename", &one, "Fix the\tbuild"]);
    assert_eq!((code, shown), (0, format!("renamed {one}: Fix the build\n")), "{said}");
    let (_, shown, _) = run(&server, &["ls"]);
    assert!(shown.lines().any(|line| line.starts_with(&one) && line.ends_with("  Fix the build")), "{shown}");
    let (code, _, said) = run(&server, &["rename", &one, &"x".repeat(201)]);
    assert!(code == 1 && said.contains("name: must be at most 200 characters long"), "{said}");

    let (code, shown, said) = run(&server, &["pin", &one, &two, &one]);
    assert_eq!((code, shown), (0, format!("pinned {one}\npinned {two}\n")), "{said}");
    let (code, shown, _) = run(&server, &["pin", "latest", "--undo", "--json"]);
    let unpinned: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((code, &unpinned["id"], &unpinned["pinned"]), (0, &json!(two), &json!(false)));
    assert_eq!(listed(&server, &["ls", "--pinned"]), std::slice::from_ref(&one));

    let (code, shown, said) = run(&server, &["archive", &one, "no-such-agent"]);
    assert!(
        code == 1 && shown.is_empty() && said.contains("not_found"),
        "nothing is archived: {shown}{said}"
    );
    assert_eq!(listed(&server, &["ls"]), [two.clone(), one.clone()]);
    let (code, shown, said) = run(&server, &["archive", &one]);
    assert_eq!((code, shown), (0, format!("archived {one}\n")), "{said}");
    assert_eq!(listed(&server, &["ls"]), std::slice::from_ref(&two));
    assert_eq!(listed(&server, &["ls", "--archived"]), std::slice::from_ref(&one));
    let (_, shown, _) = run(&server, &["show", &one[..30]]);
    assert!(shown.contains("marked    pinned, archived\n"), "found by the beginning of its id: {shown}");
    let (code, shown, said) = run(&server, &["archive", &one[..30], "--undo"]);
    assert_eq!((code, shown), (0, format!("unarchived {one}\n")), "{said}");
    assert_eq!(listed(&server, &["ls"]), [two, one.clone()]);
    let (code, shown, _) = run(&server, &["rename", &one, ""]);
    assert_eq!((code, shown), (0, format!("removed the name of {one}\n")));
    assert_eq!(listed(&server, &["ls", "--archived"]), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_place_in_the_list_outlives_the_server_and_ends_with_a_message() {
    let mut server = TestServer::start();
    let id = server.launch_to_completion(&json!({})).await;
    let edit = json!({ "name": "Ada", "pinned": true, "archived": true });
    let path = format!("/api/agents/{id}");
    let answer = server.request(Method::PATCH, &path).json(&edit).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let edited: Value = answer.json().await.unwrap();
    server.kill_and_start_again();
    assert_eq!(server.get(&path).await, edited);
    assert_eq!(server.get("/api/agents").await, json!([]));

    let exported = server.request(Method::GET, &format!("{path}/export")).send().await.unwrap();
    // The order of the fields counts, so the file is sent as it is.
    let file = exported.text().await.unwrap();
    let import = server
        .request(Method::POST, "/api/agents/import")
        .header("content-type", "application/json")
        .body(file);
    let answer = import.send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::CREATED);
    let copy: Value = answer.json().await.unwrap();
    let place = (&copy["name"], &copy["pinned"], &copy["archived"]);
    assert_eq!(
        place,
        (&json!("Ada"), &json!(false), &json!(false)),
        "the name is of the agent, the rest is not"
    );

    let (status, _) = server.post(&format!("{path}/messages"), &json!({ "content": "{}" })).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    let agents = server.get("/api/agents").await;
    let ids: Vec<_> = agents.as_array().unwrap().iter().map(|agent| &agent["id"]).collect();
    assert_eq!(ids, [&copy["id"], &json!(id)], "the agent is back");
}
