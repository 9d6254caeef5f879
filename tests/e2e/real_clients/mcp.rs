//! The conformance suites of MCP, and its official client. The suites know tools and resources with fixed names, which
//! the server has for tests.

use std::path::Path;
use std::process::Command;

use crate::harness::{TestServer, fake_config};
use crate::real_clients::{clients, node};

const PAGE: &str = "../docs/reference/protocol/mcp.md";

/// A conformance suite.
struct Suite {
    /// Its folder among the clients. It contains the list of what the server does not offer.
    client: &'static str,
    /// What it runs.
    arguments: &'static [&'static str],
    /// The number of its scenarios that count.
    scenarios: usize,
    /// Scenarios that it runs in addition, and that it does not count itself.
    extra: &'static [&'static str],
    /// What the page calls its scenarios.
    called: &'static str,
}

/// The suite sends no token.
fn start() -> TestServer {
    let mut server = TestServer::prepare(&fake_config());
    server.put_token(&"a".repeat(64));
    let command = server.command(&["serve", "--log", "warn", "--insecure-no-auth", "--test-routes"]);
    server.start_by(command).unwrap();
    server
}

impl Suite {
    fn check(&self) {
        let server = start();
        let suite = clients().join(self.client);
        let suite = suite.join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let not_offered = folder.join("clients").join(self.client).join("not-offered.yml");
        let mut command = Command::new(node(&clients()));
        command.arg(suite).args(["server", "--url", &format!("http://{}/mcp", server.authority())]);
        command.args(self.arguments).arg("--expected-failures").arg(&not_offered);
        let output = command.current_dir(server.folder.path()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");

        let list = std::fs::read_to_string(not_offered).unwrap();
        let not_offered: Vec<_> = list.lines().filter_map(|line| line.trim().strip_prefix("- ")).collect();
        let (_, summary) = said.split_once("=== SUMMARY ===").expect("a summary");
        let is_extra = |line: &&str| self.extra.iter().any(|name| line.contains(&format!(" {name}:")));
        let all = summary.lines().filter(|line| line.starts_with(['✓', '✗']));
        let (extra, scenarios): (Vec<_>, Vec<_>) = all.partition(is_extra);
        assert_eq!((extra.len(), scenarios.len()), (self.extra.len(), self.scenarios), "{said}");
        let is_offered = |line: &str| !not_offered.iter().any(|name| line.contains(&format!(" {name}:")));
        let passed = scenarios.iter().filter(|line| line.starts_with('✓') && is_offered(line)).count();
        assert_eq!(passed + not_offered.len(), self.scenarios, "{said}");
        let sentence = format!("{passed} of its {} {}", self.scenarios, self.called);
        let page = std::fs::read_to_string(folder.join(PAGE)).unwrap();
        assert!(page.contains(&sentence), "the page says {sentence}");
    }
}

mod earlier {
    use super::Suite;

    #[tokio::test]
    async fn the_conformance_suite_finds_no_fault_in_what_the_server_offers() {
        let client = "mcp-conformance";
        let called = "active scenarios";
        Suite { client, arguments: &[], scenarios: 30, extra: &[], called }.check();
    }
}

mod newest {
    use super::Suite;

    /// Extensions of the protocol that the server does not have, and scenarios that the suite has for later.
    const NOT_SCORED: &[&str] = &[
        "tasks-lifecycle",
        "tasks-capability-negotiation",
        "tasks-wire-fields",
        "tasks-request-state-removal",
        "tasks-mrtr-input",
        "tasks-request-headers",
        "tasks-dispatch-and-envelope",
        "tasks-status-notifications",
        "tasks-required-task-error",
        "tasks-mrtr-composition",
        "json-schema-2020-12",
        "http-header-validation",
        "http-custom-header-server-validation",
    ];

    #[tokio::test]
    async fn the_conformance_suite_finds_no_fault_in_what_the_server_offers() {
        let client = "mcp-conformance-2026";
        let arguments = &["--requirements", "2026-07-28"];
        let called = "required scenarios";
        Suite { client, arguments, scenarios: 37, extra: NOT_SCORED, called }.check();
    }
}

mod client {
    use crate::harness::TestServer;
    use crate::questions;
    use crate::real_clients::Driver;

    #[tokio::test]
    async fn the_official_client_speaks_every_version_and_uses_all_that_there_is() {
        let server = TestServer::start();
        Driver::start("mcp", "mcp.mjs", &server, &["talk"]).finish().await;
    }

    #[tokio::test]
    async fn the_official_client_hears_that_a_transcript_grows() {
        let server = TestServer::start();
        Driver::start("mcp", "mcp.mjs", &server, &["subscription"]).finish().await;
    }

    #[tokio::test]
    async fn a_person_at_the_official_client_answers_what_an_agent_asks() {
        let server = questions::server("");
        Driver::start("mcp", "mcp.mjs", &server, &["question"]).finish().await;
    }
}
