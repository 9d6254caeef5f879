//! The conformance suite of MCP. It knows tools and resources with fixed names, which the server has for tests.

use std::path::Path;
use std::process::Command;

use crate::harness::{TestServer, fake_config};
use crate::real_clients::{clients, node};

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
    let not_offered = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/mcp-conformance/not-offered.yml");
    let mut command = Command::new(node(&clients()));
    command.arg(suite).args(["server", "--url", &format!("http://{}/mcp", server.authority())]);
    command.arg("--expected-failures").arg(not_offered).current_dir(server.folder.path());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    for scenario in ["server-initialize", "tools-call-with-progress", "resources-templates-read"] {
        assert!(said.contains(scenario), "the suite has run: {said}");
    }
}
