//! The page in a browser: its screenshots for the docs, and its speed.

use std::fs;

use crate::{Failure, bench, test, workspace};

/// Retakes the screenshots of the docs, from the recorded session.
pub(crate) fn screenshots() -> Result<(), Failure> {
    let folder = workspace::root().join("docs/screenshots");
    fs::create_dir_all(&folder)
        .map_err(|error| Failure::new(format!("cannot create {}: {error}", folder.display())))?;
    test::in_the_browser("pictures::", Some(("TOKENRAIL_TEST_SCREENSHOTS", &folder)))
}

/// Measures the speed of the page with a release build of the server.
pub(crate) fn measure() -> Result<(), Failure> {
    let server = bench::what_is_shipped()?.join("tokenrail");
    test::in_the_browser("speed::", Some(("TOKENRAIL_TEST_PROGRAM", &server)))
}
