//! The ways in which a user can name an agent: its id, the beginning or the end of the id, and `latest`.

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

/// The shortest end of this id that is not the end, or the beginning, of any of them.
fn end<'a>(id: &'a str, others: &[&str]) -> &'a str {
    let is_own = |end: &str| {
        others.iter().all(|other| !other.ends_with(end) && !other.starts_with(end)) && !id.starts_with(end)
    };
    (4..id.len()).map(|chars| &id[id.len() - chars..]).find(|end| is_own(end)).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_an_id_is_enough_if_only_one_agent_has_it() {
    // One agent in each page: the search goes through all pages.
    let config = format!("[limits]\nlist_agents = 1\n{}", crate::harness::fake_config());
    let mut server = TestServer::start_with(&config);
    let mut ids = Vec::new();
    for word in ["one", "two", "three"] {
        ids.push(server.launch_to_completion(&json!({ "say": [word] })).await);
    }
    let others: Vec<&str> = ids[1..].iter().map(String::as_str).collect();
    let short = end(&ids[0], &others);
    let (code, _, said) = run(&server, &["archive", &ids[0]]);
    assert_eq!(code, 0, "{said}");
    let (code, shown, said) = run(&server, &["tail", &short.to_uppercase()]);
    assert!(code == 0 && shown.contains("one"), "{said}");
    let (code, _, said) = run(&server, &["tail", "zzzz"]);
    assert!(code == 1 && said.contains("no such agent"), "{said}");
    server.stop();
    let (code, shown, said) = run(&server, &["reparse", end(&ids[1], &[&ids[0], &ids[2]])]);
    assert!(code == 0 && shown.contains("of 1 agent"), "{shown}{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_on_a_terminal_marks_what_is_enough_to_type() {
    let server = TestServer::start();
    let one = server.launch_to_completion(&json!({ "say": ["one"] })).await;
    let two = server.launch_to_completion(&json!({ "say": ["two"] })).await;
    let mut ls = server.command(&["ls"]);
    for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        ls.env_remove(variable);
    }
    ls.env("TERM", "xterm").stderr(std::process::Stdio::piped());
    let mut ls = crate::terminal::start(ls);
    let mut stderr = ls.child.stderr.take().unwrap();
    let (code, shown) = ls.finish();
    let mut said = String::new();
    std::io::Read::read_to_string(&mut stderr, &mut said).unwrap();
    assert_eq!(code, 0, "{shown}");
    for id in [&one, &two] {
        let marked = shown.lines().find_map(|line| {
            let (begin, rest) = line.split_once("\x1b[1m")?;
            let (end, _) = rest.split_once("\x1b[0m")?;
            (format!("{begin}{end}") == **id).then(|| end.to_owned())
        });
        let marked = marked.unwrap_or_else(|| panic!("{id} in {shown:?}"));
        let (code, _, said) = run(&server, &["show", &marked]);
        assert_eq!(code, 0, "{said}");
    }
    assert!(said.contains("for example: tokenrail tail "), "{said}");
    let (_, shown, said) = run(&server, &["ls"]);
    assert!(shown.starts_with(&format!("{two}  completed")) && said.is_empty(), "{shown}{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn latest_is_the_newest_agent() {
    let mut server = TestServer::start();
    let (code, _, said) = run(&server, &["tail", "latest"]);
    assert!(code == 1 && said.contains("no such agent: latest: there are no agents in the list"), "{said}");
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
        assert!(code == 1 && said.contains("no such agent: ffff: no id begins or ends with it"), "{said}");
        let (code, _, said) = run(&server, &["tail", &ids[0][..3]]);
        assert!(code == 1 && said.contains("type at least 4 characters"), "{said}");
    }
}
