//! The list of changed files, with a real repository.

use super::{Browser, Look, address, ended};
use crate::changes::InRepository;

const ENTRIES: &str =
    "[...document.querySelectorAll('.changed-file-head')].map((entry) => entry.textContent).join('|')";

#[tokio::test]
async fn the_page_shows_what_an_agent_has_changed() {
    let Some(lab) = InRepository::start() else { return };
    let id = lab.run("sed -i s/two/TWO/ a.txt; printf '1\\n2\\n' > 'new file.txt'").await;
    let browser = Browser::start();
    for phone in [false, true] {
        let tab = browser.tab(Look { dark: phone, phone }).await;
        tab.visit(&address(&lab.server, &format!("/agents/{id}"))).await;
        tab.until(&ended(1)).await;
        tab.until(
            "document.querySelector('[data-testid=changes-button]')?.textContent.includes('2 files +3 −1')",
        )
        .await;
        tab.click("[data-testid=changes-button]").await;
        tab.until(&format!("{ENTRIES} === 'Mmodifieda.txt+1 −1|Uuntrackednew file.txt+2 −0'")).await;
        tab.click(".changed-file:nth-child(1) .changed-file-head").await;
        tab.until("document.querySelector('.changed-file .diff-line[data-mark=\"+\"]')?.textContent.includes('TWO')")
            .await;
        assert_eq!(tab.faults().await, [""; 0], "phone: {phone}");
        // The list is too narrow for two columns.
        tab.until("document.querySelector('.changes [aria-label=Layout]') === null").await;
        tab.click(".changes [aria-label=Source] button:last-child").await;
        tab.until(&format!("{ENTRIES} === 'Mmodifieda.txt+1 −1'")).await;
        tab.click("[aria-label='Close the changes']").await;
        tab.until("document.querySelector('[data-testid=changes]') === null").await;
    }
}

#[tokio::test]
async fn the_list_grows_while_the_agent_works() {
    let Some(lab) = InRepository::start() else { return };
    let gate = lab.folder().with_file_name("gate");
    let body = serde_json::json!({
        "prompt": format!("until [ -e {gate:?} ]; do sleep 0.05; done; echo 1 > made.txt"),
        "cwd": lab.folder(),
    });
    let (_, agent) = lab.server.post("/api/agents", &body).await;
    let id = agent["agentId"].as_str().unwrap();
    let browser = Browser::start();
    let tab = browser.tab(Look::default()).await;
    tab.visit(&address(&lab.server, &format!("/agents/{id}"))).await;
    tab.until_there("[data-testid=facts]").await;
    tab.press("f").await;
    tab.until("document.querySelector('[data-testid=changes]')?.textContent.includes('Nothing has changed')")
        .await;
    std::fs::write(gate, "").unwrap();
    tab.until(&format!("{ENTRIES} === 'Uuntrackedmade.txt+1 −0'")).await;
}
