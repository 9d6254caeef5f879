//! The changes in tool calls.

use super::accessible::LOOKS;
use super::{Browser, address, ended, recording};
use crate::harness::TestServer;

/// The words of a changed line that have a colour of their own.
const COLOURED: &str = "[...document.querySelectorAll('#events .diff-line[data-mark=\"+\"] [class^=hljs]')]
    .filter((word) => getComputedStyle(word).color !== getComputedStyle(document.body).color)
    .map((word) => word.textContent).join('|')";

/// An expression: these are the lines of the first change below this place, each with its number and its mark.
fn numbered(place: &str, lines: &str) -> String {
    let texts = ["diff-number", "diff-mark", "diff-text"]
        .map(|name| format!("(line.querySelector('.{name}')?.textContent.replace(/\\n$/, '') ?? '')"))
        .join(" + ");
    format!(
        "[...document.querySelectorAll('{place} .diff-line')].map((line) => {texts}).join('|') === '{lines}'"
    )
}

const UNIFIED: &str = "41 // Waits.|42-let wait = 1;|42+let wait = 2;|43+let most = 5;|44 send();";
/// Each line of the old file, then the line of the new file beside it.
const SPLIT: &str =
    "41 // Waits.|41 // Waits.|42-let wait = 1;|42+let wait = 2;||43+let most = 5;|43 send();|44 send();";

#[tokio::test]
async fn an_edit_of_a_file_that_was_never_read_has_the_numbers_and_the_surroundings_of_its_lines() {
    let mut server = TestServer::start();
    recording::add(&mut server, &recording::with_located_edit());
    let id = server.launch_as("long", "Edit it").await;
    server.wait_for_status(&id, "completed").await;
    let browser = Browser::start();
    let tab = browser.tab_of_width(1440).await;
    tab.visit(&address(&server, &format!("/agents/{id}"))).await;
    tab.until(&ended(1)).await;
    tab.until(&numbered("#events", UNIFIED)).await;
    tab.click("#events .diff-switch button:last-child").await;
    tab.until(&numbered("#events", SPLIT)).await;
    tab.click("#events .diff-switch button:first-child").await;
    tab.press("f").await;
    tab.click(".changed-file .changed-file-head").await;
    tab.until(&numbered(".changed-file", UNIFIED)).await;
    assert_eq!(tab.faults().await, [""; 0]);
}

#[tokio::test]
async fn a_change_has_the_colours_of_its_language() {
    let mut server = TestServer::start();
    let after = "// Waits.\nlet wait = \"<script>alert(1)</script>\";\n";
    recording::add(&mut server, &recording::with_edit("// Waits.\nlet wait = \"one\";\n", after));
    let id = server.launch_as("long", "Edit it").await;
    server.wait_for_status(&id, "completed").await;
    let browser = Browser::start();
    for (name, look) in LOOKS {
        let tab = browser.tab(look).await;
        tab.visit(&address(&server, &format!("/agents/{id}"))).await;
        tab.until(&ended(1)).await;
        tab.until(&format!("{COLOURED}.startsWith('let|')")).await;
        assert!(tab.text("#events .diff").await.contains("<script>alert(1)</script>"), "{name}");
        assert_eq!(tab.faults().await, [""; 0], "{name}, a coloured change");
        let heard = tab.heard().await;
        assert_eq!((heard.errors, heard.violations), (vec![], vec![]), "{name}");
    }
}
