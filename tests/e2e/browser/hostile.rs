//! The output of agents is shown as text, however it is cut into pieces: markup, links, and terminal codes.

#[path = "../../security/in_chromium/corpus.rs"]
mod corpus;

use serde_json::{Value, json};

use super::{Browser, ended, tab_on};
use crate::harness::TestServer;
use corpus::{SCRIPTS, SECRET};

/// Colours, cursor, title, clipboard, links, and codes that do not end.
const CODES: [&str; 12] = [
    "\u{1b}[31mred\u{1b}[0m and \u{1b}[1;4;38;5;208mmore\u{1b}[m",
    "\u{1b}[2J\u{1b}[H\u{1b}[1A\u{1b}[2K",
    "\u{1b}]0;window.hit=1\u{7}",
    "\u{1b}]52;c;d2luZG93LmhpdD0x\u{7}",
    "\u{1b}]8;;javascript:window.hit=1\u{1b}\\link\u{1b}]8;;\u{1b}\\",
    "\u{1b}]8;;http://evil.test/\u{7}<img src=x onerror=window.hit=1>\u{1b}]8;;\u{7}",
    "\u{9b}31m<script>window.hit=1</script>\u{9b}0m",
    "\u{1b}Pq#0;2;0;0;0~-\u{1b}\\",
    "\u{1b}_G;http://evil.test/x.png\u{1b}\\",
    "progress 10%\rprogress 20%\u{8}\u{8}\u{8}",
    "\u{1b}[38;2;300;-1;url(http://evil.test/)m",
    "\u{1b}]8;;\u{1b}[",
];

/// Elements that the page never creates, links to anything but web pages and mailboxes, and styles that load something.
const STRANGE: &str = r"[
  ...document.querySelectorAll('#events :is(img,iframe,object,embed,math,base,meta,link,style,script,template,video,audio,marquee,details,form,svg:not(.icon))'),
  ...document.querySelectorAll('[onerror],[onload],[onclick],[srcdoc],[style*=url]'),
  ...[...document.links].filter((link) => !/^(https?|mailto):$/.test(link.protocol)),
].map((element) => element.outerHTML)";

/// What a script would have set, and whether the title is still the page's.
const HIT_AND_TITLE: &str = "[window.hit ?? null, document.title.endsWith(' · Tokenrail')]";

#[tokio::test]
async fn nothing_that_an_agent_says_does_anything() {
    let server = TestServer::start();
    let browser = Browser::start();
    let all: Vec<String> = SCRIPTS.iter().chain(&CODES).map(|script| format!("{script}\n\n")).collect();
    let letters: Vec<String> = all.iter().flat_map(|script| script.chars()).map(String::from).collect();
    // Pieces of three or more bytes, so that most cuts are inside a tag or a code.
    let pieces: Vec<String> = letters.chunks(3).map(<[String]>::concat).collect();
    for (turn, say) in [all, pieces, letters].into_iter().enumerate() {
        let gate = server.folder.path().join(format!("gate {turn}"));
        let prompt = json!({ "say": say, "gate": gate, "gate_after": 1 }).to_string() + "\n" + SECRET;
        let id = server.launch_as("fake", &prompt).await;
        let tab = tab_on(&browser, &server, &id).await;
        tab.evaluate("window.hit = null").await;
        std::fs::write(gate, "").unwrap();
        tab.until(&ended(1)).await;
        assert_eq!(tab.evaluate(STRANGE).await, json!([]));
        assert_eq!(tab.evaluate(HIT_AND_TITLE).await, json!([null, true]));
        // Check the text as written too, and again after loading it from the history.
        super::assert_as_stored(&tab, &server, &id).await;
        tab.reload().await;
        tab.until(&ended(1)).await;
        assert_eq!(tab.evaluate(STRANGE).await, json!([]));
        assert_eq!(tab.evaluate("window.hit ?? null").await, Value::Null);
        let heard = tab.heard().await;
        assert_eq!((heard.dialogs, heard.errors, heard.violations), (vec![], vec![], vec![]));
        let elsewhere: Vec<_> =
            heard.requests.iter().filter(|url| !url.contains(&server.authority())).collect();
        assert_eq!(elsewhere, [""; 0], "it asks nobody else");
    }
}

#[tokio::test]
async fn nothing_that_a_tool_prints_does_anything() {
    let mut server = TestServer::start();
    let output = SCRIPTS.iter().chain(&CODES).copied().collect::<Vec<_>>().join("\n");
    super::recording::add(&mut server, &super::recording::with_tool_output(&json!(output)));
    let id = server.launch_as("long", "Run it").await;
    server.wait_for_status(&id, "completed").await;
    let browser = Browser::start();
    let tab = tab_on(&browser, &server, &id).await;
    tab.until(&ended(1)).await;
    tab.click("#events .tool-head").await;
    tab.click("#events .more").await;
    tab.until("document.querySelector('#events pre[aria-label=Output]').textContent.includes('window.hit=1</script>')").await;
    assert_eq!(tab.evaluate(STRANGE).await, json!([]));
    assert_eq!(tab.evaluate(HIT_AND_TITLE).await, json!([null, true]));
    let heard = tab.heard().await;
    assert_eq!((heard.dialogs, heard.errors, heard.violations), (vec![], vec![], vec![]));
}
