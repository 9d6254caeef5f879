//! The changes in tool calls.

use super::accessible::LOOKS;
use super::{Browser, address, ended, recording};
use crate::harness::TestServer;

/// The words of a changed line that have a colour of their own.
const COLOURED: &str = "[...document.querySelectorAll('#events .diff-line[data-mark=\"+\"] [class^=hljs]')]
    .filter((word) => getComputedStyle(word).color !== getComputedStyle(document.body).color)
    .map((word) => word.textContent).join('|')";

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
