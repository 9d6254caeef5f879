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
        // A phone has no room for two columns.
        let layout = format!("(document.querySelector('.changes [aria-label=Layout]') === null) === {phone}");
        tab.until(&layout).await;
        tab.click(".changes [aria-label=Source] button:last-child").await;
        tab.until(&format!("{ENTRIES} === 'Mmodifieda.txt+1 −1'")).await;
        tab.click("[aria-label='Close the changes']").await;
        tab.until("document.querySelector('[data-testid=changes]') === null").await;
    }
}

/// The two columns, and whether something has a scroll bar of its own or lies outside of the window.
const COLUMNS: &str = "(() => {
  const [left, right] = [...document.querySelectorAll('.changed-file .diff-pair > .diff-line')].slice(0, 2);
  const diff = document.querySelector('.changed-file .diff');
  return {
    areBeside: left.getBoundingClientRect().right <= right.getBoundingClientRect().left + 1,
    isWide: left.getBoundingClientRect().width > 300,
    scrolls: diff.scrollHeight > diff.clientHeight,
    beyond: document.documentElement.scrollWidth > innerWidth,
  };
})()";

#[tokio::test]
async fn old_and_new_lines_are_side_by_side_on_the_screen_of_a_laptop() {
    let Some(lab) = InRepository::start() else { return };
    let id = lab.run("sed -i s/two/TWO/ a.txt; seq 90 > many.txt").await;
    let browser = Browser::start();
    for width in [1440, 1280] {
        let tab = browser.tab_of_width(width).await;
        tab.visit(&address(&lab.server, &format!("/agents/{id}"))).await;
        tab.until(&ended(1)).await;
        tab.press("f").await;
        tab.click(".changes [aria-label=Layout] button:last-child").await;
        tab.click(".changed-file:nth-child(1) .changed-file-head").await;
        tab.until_there(".changed-file .diff-pair").await;
        let seen =
            serde_json::json!({ "areBeside": true, "isWide": true, "scrolls": false, "beyond": false });
        assert_eq!(tab.evaluate(COLUMNS).await, seen, "{width} pixels");
        assert_eq!(tab.faults().await, [""; 0], "{width} pixels");
        let title = "document.querySelector('.head-title').checkVisibility({ visibilityProperty: true })";
        assert_eq!(tab.evaluate(title).await, width == 1440, "the conversation stays if there is room");
        tab.press("Escape").await;
        tab.until("document.activeElement?.dataset.testid === 'changes-button'").await;
        assert_eq!(tab.evaluate(title).await, true);
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
    tab.until("document.querySelector('[data-testid=changes]')?.textContent.includes('Nothing differs')")
        .await;
    std::fs::write(gate, "").unwrap();
    tab.until(&format!("{ENTRIES} === 'Uuntrackedmade.txt+1 −0'")).await;
}
