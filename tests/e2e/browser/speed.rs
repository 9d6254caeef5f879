//! How fast the page is. The test prints its figures, which are in docs/PERFORMANCE.md. The asserted limits are far
//! higher, because a test shares its machine. `cargo xtask web measure` runs this alone.

use serde_json::{Value, json};

use super::recording::server_with;
use super::unwatched::Unwatched;
use super::{Browser, Look, Tab, address, ended, tab_on};
use crate::harness::TestServer;

/// The longest task of the page, in milliseconds.
const LONG_TASK_MS: f64 = 50.0;
/// From the click to the conversation, in milliseconds.
const FIRST_PAINT_MS: f64 = 300.0;
/// The factor by which a busy machine may exceed that.
const GENEROUS: f64 = 20.0;

/// An expression: how often the page requested the newest messages.
const ASKED_FOR_THE_NEWEST: &str =
    "performance.getEntriesByType('resource').filter(({ name }) => name.includes('last=')).length";

const OPENED: usize = 15;
const MESSAGES: usize = 1000;
const TOKENS: u64 = 1600;
const TOKEN_US: u64 = 5000;
/// Tokens of about 150 characters each.
const LONG_TOKENS: u64 = 1000;

#[tokio::test]
async fn a_stream_of_200_tokens_a_second_holds_nothing_up() {
    let (_tab, tasks) = long_tasks_of((0..TOKENS).map(token).collect()).await;
    println!("{TOKENS} tokens at {} tokens/s: {}", 1_000_000 / TOKEN_US, described(&tasks));
    assert!(longest(&tasks) < LONG_TASK_MS * GENEROUS, "{tasks:?}");
}

#[tokio::test]
async fn an_answer_over_100_000_characters_holds_nothing_up_and_is_seen_to_its_end() {
    let (tab, tasks) = long_tasks_of((0..LONG_TOKENS).map(paragraph).collect()).await;
    let shown = "document.querySelector('[data-testid=row-text] .words').textContent";
    tab.until(&format!("{shown}.includes('This is paragraph {},')", LONG_TOKENS - 1)).await;
    let length = tab.evaluate(&format!("{shown}.length")).await.as_u64().unwrap();
    println!("an answer of {length} characters: {}", described(&tasks));
    assert!(length > 100_000);
    assert!(longest(&tasks) < LONG_TASK_MS * GENEROUS, "{tasks:?}");
}

/// Makes an agent print these tokens while a tab shows them. Returns the tab, and its long tasks in milliseconds.
async fn long_tasks_of(say: Vec<String>) -> (Tab, Vec<f64>) {
    let server = TestServer::start();
    let browser = Browser::start();
    let gate = server.folder.path().join("gate");
    let script = json!({ "say": say, "pace_us": TOKEN_US, "gate": gate, "gate_after": 20 });
    let id = server.launch(&script).await;
    let tab = tab_on(&browser, &server, &id).await;
    tab.until("document.querySelector('[data-streaming]')").await;
    // Do not count what it took to load the page.
    tab.evaluate("window.from = performance.now()").await;
    std::fs::write(gate, "").unwrap();
    tab.until(&format!(
        "document.querySelectorAll('#events [data-testid=result]').length === 1 || {}",
        ended(1)
    ))
    .await;
    let tasks = tab.evaluate("window.noted.longTasks.filter((task) => task.startTime > window.from).map((task) => task.duration)").await;
    (tab, serde_json::from_value(tasks).unwrap())
}

fn longest(tasks: &[f64]) -> f64 {
    tasks.iter().copied().fold(0.0, f64::max)
}

fn described(tasks: &[f64]) -> String {
    format!("{} tasks over {LONG_TASK_MS} ms, the longest of {} ms", tasks.len(), longest(tasks))
}

#[tokio::test]
async fn a_conversation_of_a_thousand_messages_is_there_at_once() {
    let (server, id) = server_with(MESSAGES).await;
    let browser = Unwatched::start().await;
    let mut noted = Vec::new();
    // Skip the first result: the browser has only just started.
    for opened in 0..=OPENED {
        let seen = browser.open(&address(&server, &format!("/agents/{id}"))).await;
        if opened > 0 {
            noted.push(seen);
        }
    }
    noted.sort_by(|one, other| one.paint.total_cmp(&other.paint));
    let times: Vec<Value> = noted.iter().map(|noted| json!(noted.paint.round())).collect();
    let median = &noted[OPENED / 2];
    println!(
        "first paint of {MESSAGES} messages: {:.0} ms, the median of {}; its newest messages had come after {:.0} ms",
        median.paint,
        json!(times),
        median.came,
    );
    assert!(median.paint < FIRST_PAINT_MS * GENEROUS, "{times:?}");
}

#[tokio::test]
async fn the_first_picture_of_a_conversation_has_all_that_fits_and_its_messages_are_asked_for_once() {
    let (server, id) = server_with(MESSAGES).await;
    let browser = Browser::start();
    let tab = browser.tab(Look::default()).await;
    tab.visit(&address(&server, &format!("/agents/{id}"))).await;
    let noted = tab.until("window.noted.firstRow && window.noted").await;
    println!("first paint in a browser that is debugged: {:.0} ms", noted["firstRow"].as_f64().unwrap());
    assert_eq!(noted["inPart"], false, "no frame before it had a part of it");
    assert_eq!(tab.evaluate(ASKED_FOR_THE_NEWEST).await, 1, "the early answer is the one that is used");
    tab.until(&ended(1)).await;
}

/// A paragraph of a long answer.
fn paragraph(number: u64) -> String {
    let words =
        "of which there are many more in this answer than fit into any window that shows it, ".repeat(2);
    format!("\n\nThis is paragraph **{number}**, {words}it ends here.")
}

/// A piece of an answer in Markdown: headings, paragraphs, lists and code alternate.
fn token(number: u64) -> String {
    match number % 80 {
        0 => format!("\n\n## Part {}\n\n", number / 80),
        30 => "\n\n- a point\n- another, with `code`\n\n".to_owned(),
        50 => "\n\n```rust\n".to_owned(),
        70 => "\n```\n\n".to_owned(),
        within @ 51..70 => format!("let value_{within} = {number}; "),
        _ => format!("word{number} "),
    }
}
