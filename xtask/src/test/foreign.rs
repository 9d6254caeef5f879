//! Third-party programs that tests need: which tests need them, and the variables by which the tests find them.

use std::cell::RefCell;
use std::path::PathBuf;

use crate::clients::{self, CLIENTS, Client};
use crate::tools::{self, TOOLS};
use crate::{Failure, claude, package};

/// Part of the path of each test that opens the page in a browser. These tests also need the browser's driver.
pub(super) const BROWSER_TESTS: &str = "browser::";

/// Part of the path of each test in which one agent program launches another one.
const MCP_AGENTS_TESTS: &str = "mcp_agents::";

/// Part of the path of each test in which our client library follows agents of several servers.
const LIBRARY_TESTS: &str = "client_library::";

/// One or more programs, for the tests whose path contains `tests`.
pub(super) struct Foreign {
    /// Its row in the table.
    pub(super) what: &'static str,
    pub(super) tests: &'static str,
    /// The variables and their values, or why the programs are not available.
    pub(super) ready: Result<Vec<Setting>, Failure>,
}

pub(super) type Setting = (&'static str, PathBuf);

/// The paths of all tests that need third-party programs. Fetches nothing.
pub(super) fn paths_of_foreign_tests() -> Vec<&'static str> {
    let paths = RefCell::new(Vec::new());
    foreign(|path| {
        paths.borrow_mut().push(path);
        false
    });
    paths.into_inner()
}

/// The programs whose tests are wanted. Fetches them if they are missing.
pub(super) fn foreign(is_wanted: impl Fn(&'static str) -> bool) -> Vec<Foreign> {
    let mut all = Vec::new();
    for tool in TOOLS.iter().filter(|tool| is_wanted(tool.tests)) {
        let ready = tool.ready().map(|program| vec![(tool.variable, program)]);
        all.push(Foreign { what: tool.what, tests: tool.tests, ready });
    }
    if is_wanted(claude::TESTS) {
        let ready = claude::ready().map(|program| vec![(claude::VARIABLE, program)]);
        all.push(Foreign { what: "claude CLI", tests: claude::TESTS, ready });
    }
    if is_wanted(MCP_AGENTS_TESTS) {
        all.push(Foreign { what: "MCP agents", tests: MCP_AGENTS_TESTS, ready: mcp_agents() });
    }
    if is_wanted(LIBRARY_TESTS) {
        all.push(Foreign { what: "library, nodes", tests: LIBRARY_TESTS, ready: library() });
    }
    for client in CLIENTS.iter().filter(|client| is_wanted(client.tests)) {
        let ready = client.ready().map(|()| vec![(clients::VARIABLE, clients::target())]);
        all.push(Foreign { what: client.what, tests: client.tests, ready });
    }
    for kind in package::KINDS.iter().filter(|kind| is_wanted(kind.tests)) {
        let ready = kind.ready().map(|()| vec![(package::VARIABLE, package::target())]);
        all.push(Foreign { what: kind.what, tests: kind.tests, ready });
    }
    if is_wanted(BROWSER_TESTS) {
        all.push(Foreign { what: "browser", tests: BROWSER_TESTS, ready: browser() });
    }
    all
}

/// The two agent programs, and the folder in which Codex is found.
fn mcp_agents() -> Result<Vec<Setting>, Failure> {
    let claude = (claude::VARIABLE, claude::ready()?);
    clients::codex()?;
    Ok(vec![claude, (clients::VARIABLE, clients::target())])
}

/// A database, and the Node that runs the library.
fn library() -> Result<Vec<Setting>, Failure> {
    let postgres = (tools::POSTGRES.variable, tools::POSTGRES.ready()?);
    clients::node()?;
    Ok(vec![postgres, (clients::VARIABLE, clients::target())])
}

/// A browser, its driver, a proxy, a database, and the clients that pages of another origin use.
pub(super) fn browser() -> Result<Vec<Setting>, Failure> {
    let chromium = (tools::CHROMIUM.variable, tools::CHROMIUM.ready()?);
    let nginx = (tools::NGINX.variable, tools::NGINX.ready()?);
    let postgres = (tools::POSTGRES.variable, tools::POSTGRES.ready()?);
    clients::BROWSER_DRIVER.ready()?;
    clients::in_pages().try_for_each(Client::ready)?;
    Ok(vec![chromium, nginx, postgres, (clients::VARIABLE, clients::target())])
}
