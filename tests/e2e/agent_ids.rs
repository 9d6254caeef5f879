//! The ways in which a user can name an agent: its id, the beginning of the id, and `latest`.

use serde_json::json;

use crate::harness::TestServer;

fn run(server: &TestServer, args: &[&str]) -> (i32, String, String) {
    let output = server.command(args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// The shortest beginning that belongs to this id and to none of the others.
fn beginning<'a>(id: &'a str, others: &[&str]) -> &'a str {
    let common = |other: &&str| id.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let common = others.iter().map(common).max().unwrap_or(0);
    &id[..4.max(common + 1)]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_beginning_of_an_id_is_enough_if_only_one_agent_has_it() {
    let mut server = TestServer::start();
    let first = server.launch_to_completion(&json!({ "say": ["one"] })).await;
    let second = server.launch_to_completion(&json!({ "say": ["two"] })).await;
    let (short, newest) = (beginning(&first, &[&second]), beginning(&second, &[&first]));
    let (code, shown, said) = run(&server, &["tail", short]);
    assert!(code == 0 && shown.contains("one"), "{said}");
    let (code, shown, said) = run(&server, &["tail", &newest.to_uppercase()]);
    assert!(code == 0 && shown.contains("two"), "{said}");
    let (code, shown, said) = run(&server, &["cancel", short]);
    assert_eq!(
        (code, shown.trim_end()),
        (0, format!("{first} has already ended: completed").as_str()),
        "{said}"
    );
    let (code, shown, said) = run(&server, &["export", short]);
    assert!(code == 0 && shown.contains(&first), "{said}");
    let (code, shown, said) = run(&server, &["replay", short, "--speed", "0"]);
    assert!(code == 0 && shown.contains("one"), "{said}");
    server.stop();
    let (code, shown, said) = run(&server, &["reparse", short]);
    assert!(code == 0 && shown.contains("of 1 agent"), "{shown}{said}");
    let (code, _, said) = run(&server, &["reparse", &first[..4]]);
    assert!(code == 1 && said.contains("is the beginning of 3 ids"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn latest_is_the_newest_agent() {
    let mut server = TestServer::start();
    let (code, _, said) = run(&server, &["tail", "latest"]);
    assert!(code == 1 && said.contains("no such agent: latest: there are no agents yet"), "{said}");
    server.launch_to_completion(&json!({ "say": ["one"] })).await;
    server.launch_to_completion(&json!({ "say": ["two"] })).await;
    let (code, shown, said) = run(&server, &["tail", "latest"]);
    assert!(code == 0 && shown.contains("two") && !shown.contains("one"), "{said}");
    server.stop();
    let (code, shown, said) = run(&server, &["reparse", "latest"]);
    assert!(code == 0 && shown.contains("of 1 agent"), "{shown}{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ambiguous_or_unknown_beginning_is_explained() {
    // One agent in each page: neighbours are found nevertheless.
    let config = format!("[limits]\nlist_agents = 1\n{}", crate::harness::fake_config());
    for (server, count) in [(TestServer::start(), 12), (TestServer::start_with(&config), 3)] {
        let mut ids = Vec::new();
        for _ in 0..count {
            ids.push(server.launch_to_completion(&json!({ "deltas": 1 })).await);
        }
        // The first characters are the time, so they are the same for all of them.
        let (code, shown, said) = run(&server, &["cancel", &ids[0][..4]]);
        assert_eq!((code, &shown[..]), (1, ""), "{said}");
        let listed = said.lines().filter(|line| line.contains("  completed  fake  {")).count();
        assert_eq!(listed, count.min(10), "{said}");
        let number = if count == 12 { "more than 10".to_owned() } else { count.to_string() };
        assert!(said.contains(&format!("is the beginning of {number} ids; type more of the id:")), "{said}");
        let (code, _, said) = run(&server, &["tail", "ffff"]);
        assert!(code == 1 && said.contains("no such agent: ffff: no id begins with it"), "{said}");
        let (code, _, said) = run(&server, &["tail", &ids[0][..3]]);
        assert!(code == 1 && said.contains("type at least 4 characters"), "{said}");
    }
}
