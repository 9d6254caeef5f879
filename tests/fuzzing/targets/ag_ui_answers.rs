//! Whatever one of AG-UI's clients answers to the open permission requests of an agent: all answers take effect, or
//! none.

use std::collections::BTreeMap;

use actix_web::test::TestRequest;
use serde_json::Value;
use tokenrail_domain::{AgentId, Event, EventBody, Notice};

use super::ag_ui;
use super::asker::REQUESTS;
use super::world::{self, Answer, HOST, World};

pub(crate) const WORDS: &[&str] = &[
    "true",
    "false",
    "\"yes\"",
    "\"no\"",
    "{\"approved\":true}",
    "{\"approved\":false,\"note\":\"n\"}",
    "{\"optionId\":\"a\"}",
    "{\"optionIds\":[\"a\",\"b\"]}",
    "{\"text\":\"t\"}",
    "\"approved\":",
    "\"optionId\":",
    "\"optionIds\":[",
    "\"text\":",
    "\"note\":",
    ",\"note\":null",
    "\"always\"",
    "\\ud800",
    "\n0",
    "\n10",
    "\n2",
    "\n31",
    "\n4",
    "\n5",
];

/// The options of the requests, and whether each allows the call.
const OPTIONS: [(&str, bool); 6] =
    [("yes", true), ("always", true), ("a", true), ("b", true), ("no", false), ("", false)];

/// Each line is an answer: a digit for the permission request, a digit for the status, and the payload, if any.
pub(crate) fn run(data: &[u8]) {
    let entries: Vec<Entry> = data.split(|byte| *byte == b'\n').filter_map(Entry::of).collect();
    let list = entries.iter().map(Entry::json).collect::<Vec<_>>().join(",");
    world::with(async |world, _| {
        let agent = world.ask().await;
        let body = format!(r#"{{"threadId":"{agent}","runId":"r","messages":[],"resume":[{list}]}}"#);
        let first = post(&world, &body).await;
        let is_run = is_run(&first);
        check(&entries, is_run, &settled(&world, agent).await, &first);
        if is_run {
            let again = post(&world, &body).await;
            assert!(self::is_run(&again), "a repeated answer is no error: {again:?}");
            assert!(!first.whole || first.body == again.body, "it is the same run: {again:?}");
        }
        world.service.cancel(agent).await.expect("it can be cancelled");
        world.ended(agent).await;
    });
}

/// Whether the response has the events of runs. A permission request ends a run, and the next one begins.
fn is_run(answer: &Answer) -> bool {
    let Some(kinds) = ag_ui::kinds(answer) else { return false };
    let mut runs = false;
    for kind in &kinds {
        assert_eq!(runs, kind != "RUN_STARTED", "{kinds:?}");
        runs = !ag_ui::is_end(kind);
    }
    assert!(!answer.whole || !runs, "{kinds:?}");
    true
}

struct Entry {
    interrupt: String,
    status: &'static str,
    payload: Option<String>,
}

impl Entry {
    fn of(line: &[u8]) -> Option<Self> {
        let (request, rest) = line.split_first()?;
        let (status, payload) = rest.split_first().unwrap_or((&b'0', &[]));
        let interrupt = match REQUESTS.get(usize::from(request & 7)) {
            Some((id, ..)) => format!("1:{id}"),
            None => ["2:1-1", "1:", "01:1-1"][usize::from(request % 3)].to_owned(),
        };
        let status = ["resolved", "cancelled", "resolved", "unknown"][usize::from(status & 3)];
        let payload = String::from_utf8_lossy(payload).into_owned();
        Some(Self { interrupt, status, payload: Some(payload).filter(|payload| !payload.is_empty()) })
    }

    fn json(&self) -> String {
        let payload = self.payload.as_ref().map(|payload| format!(r#","payload":{payload}"#));
        let (interrupt, payload) = (&self.interrupt, payload.unwrap_or_default());
        format!(r#"{{"interruptId":"{interrupt}","status":"{}"{payload}}}"#, self.status)
    }
}

async fn post(world: &World, body: &str) -> Answer {
    let request = TestRequest::post().uri("/ag-ui/asker").insert_header(("host", HOST));
    world.call(request.insert_header(("content-type", "application/json")).set_payload(body.to_owned())).await
}

/// The permission requests that are settled, and the option that was chosen, if any.
async fn settled(world: &World, agent: AgentId) -> BTreeMap<String, Option<String>> {
    let settled = |event: &Event| match &event.body {
        EventBody::Notice(notice) if notice.subtype == Notice::PERMISSION_RESOLVED => {
            let data: Value = serde_json::from_str(notice.data.as_str()).expect("JSON");
            assert_eq!(data["by"], "user", "{data}");
            let id = data["requestId"].as_str().expect("an id").to_owned();
            Some((id, data["optionId"].as_str().map(str::to_owned)))
        }
        _ => None,
    };
    world.journal(agent).await.iter().filter_map(settled).collect()
}

fn check(entries: &[Entry], is_run: bool, settled: &BTreeMap<String, Option<String>>, answer: &Answer) {
    if !is_run {
        assert!(settled.is_empty(), "{settled:?} by {answer:?}");
        return;
    }
    let mut answered = BTreeMap::new();
    for Entry { interrupt, status, payload } in entries {
        let request = interrupt.strip_prefix("1:").unwrap_or_else(|| panic!("{interrupt} is unknown"));
        assert_ne!(*status, "unknown");
        // The first answer counts.
        answered.entry(request).or_insert((*status, payload.as_deref()));
    }
    assert!(!answered.is_empty() && answered.keys().eq(settled.keys()), "{settled:?} by {answer:?}");
    for (request, (status, payload)) in answered {
        let option = settled[request].as_deref();
        let known = OPTIONS.iter().find(|(id, _)| Some(*id) == option.or(Some("")));
        let allows = known.unwrap_or_else(|| panic!("{request} has no option {option:?}")).1;
        let payload = payload.unwrap_or_default().trim();
        match (status, payload) {
            ("cancelled", _) => assert_eq!(option, None, "{request}"),
            (_, "true") => assert!(allows, "{request} with {option:?}"),
            (_, "false") => assert!(!allows, "{request} with {option:?}"),
            (_, payload) if payload.starts_with('"') => {
                let text: String = serde_json::from_str(payload).expect("a text");
                assert_eq!(option, Some(&*text), "{request}");
            }
            (_, payload) => {
                let payload: Value = serde_json::from_str(payload).unwrap_or_default();
                let one = payload["optionId"].as_str();
                assert!(one.is_none() || one == option, "{request} with {option:?}");
                assert!(payload["approved"] != true || allows, "{request} with {option:?}");
                assert!(payload["approved"] != false || !allows, "{request} with {option:?}");
            }
        }
    }
}
