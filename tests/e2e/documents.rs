//! The documents are tested: each code block in `README.md` and below `docs/` is parsed or run here, or has a mark that
//! says why not. `docs/CONTRIBUTING.md` describes the marks.

mod blocks;
mod checks;
mod session;
mod two_nodes;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use blocks::Page;
use session::Outcome;

/// Runs only the pages whose path contains this text.
const ONLY: &str = "TOKENRAIL_TEST_PAGE";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the repository")
}

/// `README.md`, and every Markdown file below `docs/`.
fn pages() -> Vec<Page> {
    let root = root();
    let mut folders = vec![root.join("docs")];
    let mut files = vec![root.join("README.md")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                files.push(path);
            }
        }
    }
    files.sort();
    let read = |file: &PathBuf| {
        let name = file.strip_prefix(&root).expect("inside").to_string_lossy().into_owned();
        Page::read(&name, &std::fs::read_to_string(file).expect("a document"))
    };
    files.iter().map(read).collect()
}

#[test]
fn every_block_is_valid_or_says_why_it_is_not_checked() {
    let pages = pages();
    let blocks: usize = pages.iter().map(|page| page.blocks.len()).sum();
    assert!(20 < pages.len() && 50 < blocks, "{blocks} blocks in {} pages were found", pages.len());
    let faults: Vec<String> = pages.iter().flat_map(|page| checks::faults(page, &root())).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_commands_of_every_page_work() {
    let only = std::env::var(ONLY).unwrap_or_default();
    let pages: Vec<Page> = pages().into_iter().filter(|page| page.name.contains(&only)).collect();
    let queue = std::sync::Mutex::new(pages.iter().filter(|page| page.has_commands()));
    let failures = std::sync::Mutex::new(Vec::new());
    // Run several sessions at the same time, because they mostly wait for agents.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let Some(page) = queue.lock().unwrap().next() else { break };
                    match session::run(page) {
                        Outcome::Passed => {}
                        Outcome::NotRun(missing) => eprintln!("NOT RUN {}: {missing} is missing", page.name),
                        Outcome::Failed(output) => failures.lock().unwrap().push(output),
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// The faults of a page with this text.
fn faults_of(text: &str) -> Vec<String> {
    checks::faults(&Page::read("docs/page.md", text), &root())
}

#[test]
fn a_wrong_block_is_found() {
    let check = |text: &str, expected: &str| {
        let faults = faults_of(text);
        assert!(faults.len() == 1 && faults[0].contains(expected), "{text}: {faults:?}");
    };
    check("```json\n{\"a\": }\n```\n", "docs/page.md:1: not JSON");
    check("a\n\n```toml\n[limits]\nrunning_agent = 1\n```\n", "docs/page.md:3: ");
    check("```js\nlet a;\n```\n", "needs a mark");
    check("```\nls\n```\n", "has no language");
    check("```brainfuck\n+\n```\n", "unknown language");
    check("<!-- not run: -->\n```sh\nls\n```\n", "gives no reason");
    check("<!-- not runn: it is long -->\n```sh\nls\n```\n", "unknown mark");
    check("<!-- tested in: tests/e2e/main.rs -->\n```js\nlet a;\n```\n", "does not name page.md");
    check("<!-- excerpt: crates/domain/src/lib.rs -->\n```rust\nfn never_written() {}\n```\n", "is not in");
    check("text\n\n    ls\n", "indented code");
    check("```sh\nls\n", "does not end");
    assert_eq!(
        faults_of("<!-- not run: needs a login -->\n```sh\nclaude\n```\n\n```text\nanything\n```\n"),
        [""; 0]
    );
}

#[test]
fn a_command_that_fails_is_found_with_its_line() {
    let page = Page::read(
        "docs/page.md",
        "# A page\n\n```sh\ntrue\n```\n\n```sh\nfalse\n```\n\n```sh\nexit 0\n```\n",
    );
    let Outcome::Failed(output) = session::run(&page) else { panic!("it must fail") };
    assert!(output.contains("docs/page.md:7"), "{output}");
    let page = Page::read("docs/page.md", "<!-- needs: no-such-program -->\n```sh\nfalse\n```\n");
    assert!(matches!(session::run(&page), Outcome::NotRun(missing) if missing == "no-such-program"));
}

/// Every command with its help, as a page.
fn command_reference() -> String {
    let help = |arguments: &[&str]| {
        let mut command = std::process::Command::new(crate::harness::program());
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TOKENRAIL_"))
        {
            command.env_remove(name);
        }
        let output = command.args(arguments).arg("--help").output().expect("the program");
        assert!(output.status.success(), "{arguments:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    let all = help(&[]);
    let commands =
        all.split_once("Commands:\n").expect("its commands").1.split("\n\n").next().expect("a list");
    let names =
        commands.lines().filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
    let mut page = String::from(COMMANDS_BEGIN);
    let _ = writeln!(page, "```text\n{all}```");
    for name in names {
        let _ = writeln!(page, "\n## tokenrail {name}\n\n```text\n{}```", help(&[name]));
    }
    page.push_str(COMMANDS_END);
    page
}

const COMMANDS_BEGIN: &str = "# Command reference\n\n\
    Instead of an agent's id, you can write its first or its last characters (at least 4, and as many as are needed to \
    match exactly one agent), or `latest` for the newest agent. The last characters are random, so a few are enough: \
    `tokenrail ls` marks them in bold. The first characters encode the time of the launch. Agents launched within a \
    few weeks of each other usually have the same first 4. Agents launched within the same minute usually have the \
    same first 8. An archived agent is found by a part of its id, but is never `latest`. A deleted agent is found only \
    by its full id. [Exit codes](configuration.md#exit-codes) and \
    [environment variables](configuration.md#environment-variables) are in the configuration reference.\n\n";

const COMMANDS_END: &str = "\n## About this page\n\n\
    This page is generated from the help of the program; a test compares the two. To regenerate it after a change to the \
    help texts, run \
    `TOKENRAIL_TEST_WRITE=true cargo test -p tokenrail-tests --test e2e -- documents::the_command_reference`.\n";

#[test]
fn the_command_reference_is_what_the_program_says() {
    let (file, page) = (root().join("docs/reference/cli.md"), command_reference());
    if std::env::var_os("TOKENRAIL_TEST_WRITE").is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap();
    assert!(written == page, "docs/reference/cli.md is old; it says itself how to write it anew");
}

#[tokio::test]
async fn every_metric_has_its_line_in_the_reference() {
    let server = crate::harness::TestServer::start();
    // A counter with labels appears only after its first count.
    server.get("/api/agents").await;
    let answer = server.request(reqwest::Method::GET, "/metrics").send().await.unwrap().text().await.unwrap();
    let types = answer.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let found: std::collections::BTreeSet<String> =
        types.map(|line| line.replace(" counter", "_total").replace(" gauge", "")).collect();
    let page = std::fs::read_to_string(root().join("docs/reference/metrics.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `tokenrail_")?.split('`').next());
    let documented = rows.map(|name| format!("tokenrail_{name}")).collect();
    assert_eq!(found, documented);
}
