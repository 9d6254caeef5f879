//! How a user reads: scrolling, searching, replaying, exporting, and all of it with the keyboard.

use serde_json::{Value, json};

use super::recording::server_with;
use super::{Browser, Look, address, ended, ended_in_tab, rows_of, says, tab_on};
use crate::harness::{TestServer, numbers};

/// An expression: the pixels between the visible part and the end.
const DISTANCE: &str = "(({ scrollTop, scrollHeight, clientHeight }) => scrollHeight - scrollTop - clientHeight)(document.querySelector('#events'))";

/// The length of the text so far.
const LENGTH: &str = "document.querySelector('#events [data-testid=row-text]').textContent.length";

/// A promise: the position of the list after it has stopped moving. A browser scrolls gradually.
const AT_REST: &str = "new Promise((done) => {
  const list = document.querySelector('#events');
  let [before, frames] = [-1, 0];
  requestAnimationFrame(function look() {
    frames = list.scrollTop === before ? frames + 1 : 0;
    before = list.scrollTop;
    if (frames < 20) requestAnimationFrame(look);
    else done(before);
  });
})";

/// A promise: the contents of the document while a reader scrolls from the end to the start, a few screens at a time.
const FROM_END_TO_START: &str = "(async () => {
  const list = document.querySelector('#events');
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  const [rows, stops] = [{}, 40];
  let most = 0;
  const look = () => {
    const items = [...list.querySelectorAll('[data-index]')];
    most = Math.max(most, items.length);
    for (const item of items) {
      const text = item.querySelector('.words')?.textContent ?? '';
      rows[item.dataset.index] = { kind: item.querySelector('[data-kind]').dataset.kind, text: text.slice(0, 40) };
    }
    const seen = list.getBoundingClientRect();
    return items.some((item) => {
      const { top, bottom } = item.getBoundingClientRect();
      return top < seen.bottom && bottom > seen.top && getComputedStyle(item).visibility === 'visible';
    });
  };
  look();
  list.dispatchEvent(new WheelEvent('wheel', { deltaY: -1 }));
  for (let stop = stops; stop > 0; stop--) {
    list.scrollTop = (list.scrollHeight * stop) / stops - list.clientHeight;
    do await frame();
    while (!look());
  }
  do {
    list.scrollTop = 0;
    await frame();
  } while (!look() || list.scrollTop > 0 || !list.querySelector('[data-index=\"0\"]'));
  return { rows, most, size: Number(list.querySelector('[data-index]').ariaSetSize) };
})()";

#[tokio::test]
async fn who_scrolls_up_is_left_alone_until_he_goes_back() {
    let server = TestServer::start();
    let browser = Browser::start();
    let hurry = server.folder.path().join("hurry");
    // Slow enough that the text stays below the length at which only its beginning is drawn, however slow the browser
    // is.
    let id = server.launch(&json!({ "deltas": 40_000, "pace_us": 3000, "hurry": hurry })).await;
    let tab = tab_on(&browser, &server, &id).await;
    // Enough text to scroll.
    tab.until(&format!("{LENGTH} > 6000 && {DISTANCE} < 48")).await;
    tab.wheel(-400).await;
    tab.until_there("[data-testid=to-end]").await;
    let before = tab.evaluate(AT_REST).await;
    tab.until(&format!("window.length_ = {LENGTH}, true")).await;
    tab.until(&format!("{LENGTH} > window.length_ + 500")).await;
    assert_eq!(
        tab.evaluate("document.querySelector('#events').scrollTop").await,
        before,
        "nothing moves under him"
    );
    tab.click("[data-testid=to-end]").await;
    tab.until(&format!("window.length_ = {LENGTH}, document.querySelector('[data-testid=to-end]') === null"))
        .await;
    tab.until(&format!("{LENGTH} > window.length_ + 300 && {DISTANCE} < 48")).await;
    // Return by scrolling down again.
    tab.wheel(-400).await;
    tab.until_there("[data-testid=to-end]").await;
    tab.wheel(100_000).await;
    tab.until("document.querySelector('[data-testid=to-end]') === null").await;
    std::fs::write(hurry, "").unwrap();
    tab.until(&format!("{} && {DISTANCE} < 48", ended(1))).await;
}

#[tokio::test]
async fn words_are_found_wherever_they_are() {
    let (server, id) = server_with(120).await;
    let browser = Browser::start();
    let tab = tab_on(&browser, &server, &id).await;
    tab.press("/").await;
    // Keys that are typed before the search field has the focus would be shortcuts.
    tab.until("document.activeElement?.dataset.testid === 'search'").await;
    tab.type_in("fn part_1").await;
    let expected: Vec<usize> = (0..120).filter(|n| n % 3 == 0 && n.to_string().starts_with('1')).collect();
    for (at, number) in expected.iter().enumerate() {
        let count = format!("{} of {}", at + 1, expected.len());
        tab.until(&format!(
            "document.querySelector('[data-testid=search-count]').textContent === {}",
            json!(count)
        ))
        .await;
        // The page draws the count before the row that it found.
        let text = json!(format!("Message {number} "));
        tab.until(&format!("document.querySelector('[data-found]')?.textContent.includes({text})")).await;
        let seen = "(([list, found]) => list.top <= found.top && found.top < list.bottom)(['#events', '[data-found]'].map((it) => document.querySelector(it).getBoundingClientRect()))";
        tab.until(seen).await;
        tab.press("Enter").await;
    }
    tab.until("document.querySelector('[data-testid=search-count]').textContent.startsWith('1 of')").await;
    tab.fill("[data-testid=search]", "of this nobody has spoken").await;
    tab.until("document.querySelector('[data-testid=search-count]').textContent.startsWith('0 of 0')").await;
    tab.press("Escape").await;
    tab.until("document.querySelector('[data-testid=search]') === null").await;
}

#[tokio::test]
async fn a_long_conversation_is_there_from_the_first_row_to_the_last() {
    let (server, id) = server_with(300).await;
    let browser = Browser::start();
    let tab = tab_on(&browser, &server, &id).await;
    tab.until(&ended(1)).await;
    let drawn = tab.evaluate("document.querySelectorAll('[data-index]').length").await;
    assert!(drawn.as_u64().unwrap() < 100, "{drawn} of them are in the document");
    super::assert_as_stored(&tab, &server, &id).await;
}

#[tokio::test]
async fn of_ten_thousand_messages_few_are_in_the_document_and_each_is_in_its_place() {
    let (server, id) = server_with(10_000).await;
    let browser = Browser::start();
    let tab = tab_on(&browser, &server, &id).await;
    tab.until(&ended(1)).await;
    tab.until("document.querySelector('.earlier') === null").await;
    let expected = rows_of(&server.events(&id).await);
    let seen = tab.evaluate(FROM_END_TO_START).await;
    assert_eq!(seen["size"], expected.len());
    assert!(seen["most"].as_u64().unwrap() < 100, "{} of them were in the document", seen["most"]);
    let rows = seen["rows"].as_object().unwrap();
    assert!(rows.len() > 300, "only {} were seen on the way", rows.len());
    for end in [0, expected.len() - 1] {
        assert!(rows.contains_key(&end.to_string()), "row {end} was never seen");
    }
    for (index, row) in rows {
        let stored = &expected[index.parse::<usize>().unwrap()];
        assert_eq!(row["kind"], stored.kind, "row {index}");
        // The text before the first Markdown mark.
        let begins = if stored.kind == "text" { stored.text.split("**").next().unwrap() } else { "" };
        assert!(row["text"].as_str().unwrap().starts_with(begins), "row {index}: {row} is not {begins}");
    }
}

#[tokio::test]
async fn what_is_found_in_the_end_of_an_output_is_opened_and_seen() {
    let mut server = TestServer::start();
    let lines: Vec<String> = (0..400).map(|line| format!("line {line}")).collect();
    super::recording::add(&mut server, &super::recording::with_tool_output(&json!(lines.join("\n"))));
    let id = server.launch_as("long", "Say much").await;
    server.wait_for_status(&id, "completed").await;
    let browser = Browser::start();
    let tab = tab_on(&browser, &server, &id).await;
    tab.until(&ended(1)).await;
    assert!(!tab.text("#events").await.contains("line 333"));
    tab.press("/").await;
    tab.type_in("line 333").await;
    tab.until(&seen_in_its_box("line 333")).await;
}

/// An expression: this text is in the visible part of its scrolling box, and the box is in the visible part of the
/// list.
fn seen_in_its_box(text: &str) -> String {
    format!(
        "(() => {{
          const output = document.querySelector('#events pre[aria-label=Output]');
          const walker = document.createTreeWalker(output, NodeFilter.SHOW_TEXT);
          for (let node = walker.nextNode(); node; node = walker.nextNode()) {{
            const at = node.textContent.indexOf({text});
            if (at < 0) continue;
            const range = document.createRange();
            range.setStart(node, at);
            range.setEnd(node, at + 1);
            const [found, box, list] = [range, output, document.querySelector('#events')].map((it) => it.getBoundingClientRect());
            return found.top >= Math.max(box.top, list.top) && found.bottom <= Math.min(box.bottom, list.bottom);
          }}
          return false;
        }})()",
        text = json!(text)
    )
}

#[tokio::test]
async fn a_replay_goes_through_the_time_of_an_agent() {
    let server = TestServer::start();
    let browser = Browser::start();
    let id = server.launch_to_completion(&json!({ "deltas": 100, "pace_us": 10_000 })).await;
    let events = server.events(&id).await;
    let tab = tab_on(&browser, &server, &id).await;
    tab.until(&ended(1)).await;
    tab.click("[data-testid=action-replay]").await;
    // The replay reaches the end by itself, with the recorded timing.
    let whole = format!("{} of {} events", events.len(), events.len());
    let at_the_end = format!(
        "document.querySelector('[data-testid=replay-time]')?.textContent.includes({})",
        json!(whole)
    );
    tab.until_there("[data-testid=replay] [aria-label=Pause]").await;
    tab.choose("[data-testid=replay-speed]", "4").await;
    tab.until(&at_the_end).await;
    tab.until_there("[data-testid=replay] [aria-label=Play]").await;
    // Move the slider to the middle: the text has only its beginning, and there is no result.
    tab.evaluate("document.querySelector('[data-testid=scrubber]').focus()").await;
    tab.press("Home").await;
    tab.until("document.querySelector('[data-testid=result]') === null").await;
    for _ in 0..5 {
        tab.press("PageUp").await;
    }
    tab.until("document.querySelector('#events [data-testid=row-text]')").await;
    let middle = tab.text("#events [data-testid=row-text] .words").await;
    let middle = middle.trim_end();
    assert!(!middle.is_empty() && numbers(100).starts_with(middle) && middle.len() < 280, "{middle}");
    tab.press("End").await;
    tab.until(&at_the_end).await;
    assert_eq!(tab.rows().await.len(), rows_of(&events).len());
    // If a button has the focus, the shortcut for play and pause presses the button.
    tab.evaluate("document.querySelector('[aria-label=\"Close the replay\"]').focus()").await;
    tab.press("Space").await;
    tab.until_there("[data-testid=composer]").await;
    assert_eq!(server.events(&id).await, events, "nothing has changed");
}

#[tokio::test]
async fn a_replay_can_be_had_as_a_new_agent() {
    let (server, _browser, id, tab) = ended_in_tab(&json!({ "deltas": 20 })).await;
    tab.click("[data-testid=action-replay]").await;
    tab.until_there("[data-testid=replay-speed]").await;
    tab.choose("[data-testid=replay-speed]", "16").await;
    tab.click("[data-testid=replay-as-agent]").await;
    tab.until(&format!("!location.pathname.endsWith({})", json!(id))).await;
    let copy = super::agent_in(&tab).await;
    tab.until(&ended(1)).await;
    assert_eq!(server.get(&format!("/api/agents/{copy}")).await["replayOf"], json!(id));
    assert!(tab.text("[data-testid=composer-closed]").await.contains("A replay accepts no messages"));
    let (one, other) = (server.events(&id).await, server.events(&copy).await);
    assert_eq!(rows_of(&other), rows_of(&one));
    super::assert_as_stored(&tab, &server, &copy).await;
}

#[tokio::test]
async fn an_export_is_the_file_that_the_server_gives() {
    let (server, _browser, id, tab) = ended_in_tab(&json!({ "mode": "tool", "deltas": 7 })).await;
    tab.click("[data-testid=details]").await;
    let (name, text) = tab.download("[data-testid=action-download]").await;
    assert_eq!(name, format!("tokenrail-{id}.json"));
    let saved: Value = serde_json::from_str(&text).unwrap();
    let given = server.get(&format!("/api/agents/{id}/export")).await;
    // Only the time of the export may differ.
    let names = |file: &Value| file.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&saved), names(&given));
    assert_eq!((&saved["agent"], &saved["events"]), (&given["agent"], &given["events"]));
}

#[tokio::test]
async fn all_of_it_can_be_done_by_keys() {
    let (server, _browser, _, tab) = ended_in_tab(&json!({ "mode": "tool", "deltas": 5 })).await;
    let focused = |what: &str| format!("document.activeElement?.matches({})", json!(what));
    tab.press("c").await;
    tab.until(&focused("#composer-text")).await;
    tab.type_in(&json!({ "deltas": 2 }).to_string()).await;
    tab.press("Enter").await;
    tab.until(&format!("{} && {}", ended(2), says(&numbers(2)))).await;
    tab.evaluate("document.activeElement.blur()").await;
    // The first key press selects a visible row, and further ones move from row to row.
    tab.press("j").await;
    tab.until(&focused("[data-index]")).await;
    let at = tab.evaluate("Number(document.activeElement.dataset.index)").await.as_u64().unwrap();
    tab.press("j").await;
    tab.until(&focused(&format!("[data-index='{}']", at + 1))).await;
    tab.press("k").await;
    tab.until(&focused(&format!("[data-index='{at}']"))).await;
    tab.press("r").await;
    tab.until(&format!("document.querySelector('[data-index=\"{at}\"] [data-testid=raw-json]')?.textContent.includes('sequenceNumber')"))
        .await;
    tab.press("?").await;
    tab.until_there("dialog[open]").await;
    tab.press("Escape").await;
    tab.until("document.querySelector('dialog[open]') === null").await;
    tab.press("/").await;
    tab.until(&focused("[data-testid=search]")).await;
    tab.press("Escape").await;
    tab.press("n").await;
    tab.until_there("[data-testid=launch-form]").await;
    assert_eq!(tab.address().await, format!("http://{}/", server.authority()));
}

#[tokio::test]
async fn a_change_is_shown_side_by_side_if_there_is_room() {
    let mut server = TestServer::start();
    super::recording::add(&mut server, &super::recording::with_edit("one\ntwo\n", "one\n2\n3\n"));
    let id = server.launch_as("long", "Edit it").await;
    server.wait_for_status(&id, "completed").await;
    let browser = Browser::start();
    let tab = tab_on(&browser, &server, &id).await;
    let pairs = "[...document.querySelectorAll('.diff-pair')]
        .map((pair) => [...pair.children].map((cell) => cell.textContent.trimEnd()).join('|')).join()";
    tab.until("document.querySelectorAll('.diff > .diff-line').length === 4").await;
    tab.click("[data-testid=tool-card] .diff-switch button:last-child").await;
    tab.until(&format!("{pairs} === ' one| one,-two|+2,|+3'")).await;
    let columns = "new Set([...document.querySelectorAll('.diff-pair > *')].map((cell) => Math.round(cell.getBoundingClientRect().left))).size";
    assert_eq!(tab.evaluate(columns).await, 2);
    assert_eq!(tab.faults().await, [""; 0], "the two columns");
    tab.reload().await;
    tab.until(&format!("{pairs} === ' one| one,-two|+2,|+3'")).await;
    let phone = browser.tab(Look { dark: false, phone: true }).await;
    phone.visit(&address(&server, &format!("/agents/{id}"))).await;
    phone.until("document.querySelectorAll('.diff > .diff-line').length === 4").await;
    assert_eq!(phone.evaluate("document.querySelector('.diff-switch')").await, Value::Null);
}

#[tokio::test]
async fn a_closed_palette_gives_the_focus_back() {
    let (_server, _browser, _, tab) = ended_in_tab(&json!({ "deltas": 2 })).await;
    tab.press("c").await;
    tab.until("document.activeElement?.id === 'composer-text'").await;
    for close in ["Escape", "Control+k"] {
        tab.press("Control+k").await;
        tab.until("document.activeElement?.closest('[data-testid=palette]')").await;
        tab.press(close).await;
        tab.until("document.querySelector('[data-testid=palette]') === null").await;
        assert_eq!(tab.evaluate("document.activeElement?.id").await, "composer-text", "after {close}");
    }
}
