//! Programs of others that tests need: which tests, and by which variables they find them.

use std::path::PathBuf;

use crate::clients::{self, CLIENTS};
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

/// All of them, fetched if they are not there yet.
pub(super) fn foreign() -> Vec<Foreign> {
    let tools = TOOLS.iter().map(|tool| Foreign {
        what: tool.what,
        tests: tool.tests,
        ready: tool.ready().map(|program| vec![(tool.variable, program)]),
    });
    let claude = Foreign {
        what: "claude CLI",
        tests: claude::TESTS,
        ready: claude::ready().map(|program| vec![(claude::VARIABLE, program)]),
    };
    let clients = CLIENTS.iter().map(|client| Foreign {
        what: client.what,
        tests: client.tests,
        ready: client.ready().map(|()| vec![(clients::VARIABLE, clients::target())]),
    });
    let browser = Foreign { what: "browser", tests: BROWSER_TESTS, ready: browser() };
    tools.chain([claude]).chain(clients).chain([browser]).collect()
}

/// A browser, and what drives it.
pub(super) fn browser() -> Result<Vec<Setting>, Failure> {
    let chromium = (tools::CHROMIUM.variable, tools::CHROMIUM.ready()?);
    clients::BROWSER_DRIVER.ready()?;
    Ok(vec![chromium, (clients::VARIABLE, clients::target())])
}
