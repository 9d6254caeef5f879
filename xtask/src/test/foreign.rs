//! Programs of others that tests need: which tests, and by which variables they find them.

use std::path::PathBuf;

use crate::clients::{self, CLIENTS, Client};
use crate::tools::{self, TOOLS};
use crate::{Failure, claude};

/// In the path of each test that shows the page to a browser, which needs what drives it, too.
pub(super) const BROWSER_TESTS: &str = "browser::";

/// One or more of them, for the tests that have a name in their path.
pub(super) struct Foreign {
    /// Its row of the table.
    pub(super) what: &'static str,
    pub(super) tests: &'static str,
    /// The variables and what they say, or why the programs can't be had.
    pub(super) ready: Result<Vec<Setting>, Failure>,
}

pub(super) type Setting = (&'static str, PathBuf);

/// Those whose tests are wanted, fetched if they are not there yet.
pub(super) fn foreign(is_wanted: impl Fn(&str) -> bool) -> Vec<Foreign> {
    let mut all = Vec::new();
    for tool in TOOLS.iter().filter(|tool| is_wanted(tool.tests)) {
        let ready = tool.ready().map(|program| vec![(tool.variable, program)]);
        all.push(Foreign { what: tool.what, tests: tool.tests, ready });
    }
    if is_wanted(claude::TESTS) {
        let ready = claude::ready().map(|program| vec![(claude::VARIABLE, program)]);
        all.push(Foreign { what: "claude CLI", tests: claude::TESTS, ready });
    }
    for client in CLIENTS.iter().filter(|client| is_wanted(client.tests)) {
        let ready = client.ready().map(|()| vec![(clients::VARIABLE, clients::target())]);
        all.push(Foreign { what: client.what, tests: client.tests, ready });
    }
    if is_wanted(BROWSER_TESTS) {
        all.push(Foreign { what: "browser", tests: BROWSER_TESTS, ready: browser() });
    }
    all
}

/// A browser, what drives it, and the clients that pages of another origin use.
pub(super) fn browser() -> Result<Vec<Setting>, Failure> {
    let chromium = (tools::CHROMIUM.variable, tools::CHROMIUM.ready()?);
    clients::BROWSER_DRIVER.ready()?;
    clients::in_pages().try_for_each(Client::ready)?;
    Ok(vec![chromium, (clients::VARIABLE, clients::target())])
}
