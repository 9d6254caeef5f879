//! The conformance suite of MCP. It knows tools and resources with fixed names, which the server has for tests.

use std::path::Path;
use std::process::Command;

use crate::harness::{TestServer, fake_config};
use crate::real_clients::{clients, node};

/// The number of the suite's active scenarios.
const SCENARIOS: usize = 30;
const NOT_OFFERED: &str = "clients/mcp-conformance/not-offered.yml";

/// The suite sends no token.
fn start() -> TestServer {
    let mut server = TestServer::prepare(&fake_config());
    server.put_token(&"a".repeat(64));
    let command = server.command(&["serve", "--log", "warn", "--insecure-no-auth", "--test-routes"]);
    server.start_by(command).unwrap();
    server
}

#[tokio::test]
async fn the_conformance_suite_finds_no_fault_in_what_the_server_offers() {
    let server = start();
    let suite =
        clients().join("mcp-conformance/node_modules/@modelcontextprotocol/conformance/dist/index.js");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let not_offered = folder.join(NOT_OFFERED);
    let mut command = Command::new(node(&clients()));
    command.arg(suite).args(["server", "--url", &format!("http://{}/mcp", server.authority())]);
    command.arg("--expected-failures").arg(&not_offered).current_dir(server.folder.path());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");

    let list = std::fs::read_to_string(not_offered).unwrap();
    let not_offered: Vec<_> = list.lines().filter_map(|line| line.trim().strip_prefix("- ")).collect();
    let (_, summary) = said.split_once("=== SUMMARY ===").expect("a summary");
    let scenarios: Vec<_> = summary.lines().filter(|line| line.starts_with(['✓', '✗'])).collect();
    assert_eq!(scenarios.len(), SCENARIOS, "{said}");
    let is_offered = |line: &str| !not_offered.iter().any(|name| line.contains(&format!(" {name}:")));
    let passed = scenarios.iter().filter(|line| line.starts_with('✓') && is_offered(line)).count();
    assert_eq!(passed + not_offered.len(), SCENARIOS, "{said}");
    let page = std::fs::read_to_string(folder.join("../docs/reference/protocol/mcp.md")).unwrap();
    assert!(
        page.contains(&format!("{passed} of its {SCENARIOS} active scenarios")),
        "the page says {passed}"
    );
}
