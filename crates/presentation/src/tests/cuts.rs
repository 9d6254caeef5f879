//! Every stream of a foreign vocabulary is cut at every place from which a client can resume. What comes then is
//! exactly the rest: the same bytes, apart from the comments that only keep a connection alive.

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokenrail_application::Deletion;
use tokenrail_domain::{AgentId, Event, EventBody, Timestamp, TurnNumber};
use tokenrail_ports::{Idempotency, KeyLife};

use super::dialects::small_batches;
use super::harness::{Answer, Harness};
use super::journals::{LONG, PROMPT, STORIES, events, keep_with_keys, written_in_turns};
use super::mcp::tool;

/// An agent with a turn for each story.
struct Told {
    harness: Harness,
    id: AgentId,
    turns: usize,
    events: Vec<Event>,
}

/// The last of the stories still runs, so its streams would not end. The long turn is in its place.
async fn all_told() -> Told {
    all_told_at(small_batches()).await
}

async fn all_told_at(harness: Harness) -> Told {
    let mut stories = STORIES.map(|(_, story)| story);
    stories[STORIES.len() - 1] = LONG.1;
    let (agent, appends) = written_in_turns(1, &stories);
    let events = events(&appends);
    keep_with_keys(&harness.store, &agent, appends, |turn| key(agent.id, turn)).await;
    Told { harness, id: agent.id, turns: stories.len(), events }
}

/// The message of a turn was sent by AG-UI, as a run.
fn key(agent: AgentId, turn: TurnNumber) -> Option<Idempotency> {
    (TurnNumber::FIRST < turn).then(|| Idempotency {
        scope: format!("message:{agent}"),
        key: format!("ag-ui:run-{turn}"),
        body: PROMPT.to_owned(),
        used_at: Timestamp(0),
        forget_before: Timestamp(0),
        life: KeyLife::UntilForgotten,
    })
}

impl Told {
    /// The name of a turn in OpenAI's ids.
    fn turn(&self, number: usize) -> String {
        format!("{}{number:08x}", self.id.to_string().replace('-', ""))
    }

    /// Cuts the stream after each of its blocks. `after` is what a client adds to the path to get the rest; `None` if
    /// the block has no number. Returns the number of blocks.
    async fn cut(&self, path: &str, after: impl Fn(&str) -> Option<String>) -> usize {
        self.cut_stream(path, after, async |path| self.harness.get(path).await).await
    }

    /// The same, with any request for a path.
    async fn cut_stream(
        &self,
        path: &str,
        after: impl Fn(&str) -> Option<String>,
        request: impl AsyncFn(&str) -> Answer,
    ) -> usize {
        let whole = blocks(&request(path).await);
        for (index, block) in whole.iter().enumerate() {
            let Some(after) = after(block) else { continue };
            let rest = blocks(&request(&format!("{path}{after}")).await);
            let same = rest.iter().zip(&whole[index + 1..]).take_while(|(one, other)| one == other).count();
            assert_eq!(rest.get(same), whole.get(index + 1 + same), "{path}{after}: block {same}");
        }
        whole.len()
    }
}

/// The blocks of a stream, without comments.
pub(super) fn blocks(answer: &Answer) -> Vec<String> {
    assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, "text/event-stream"));
    let blocks = answer.text.split_inclusive("\n\n").filter(|block| !block.starts_with(':'));
    blocks.map(str::to_owned).collect()
}

pub(super) fn data(block: &str) -> Value {
    serde_json::from_str(block.split_once("data: ").unwrap().1).unwrap()
}

#[actix_web::test]
async fn a_response_continues_after_every_event() {
    let told = all_told().await;
    let mut longest = 0;
    for turn in 1..=told.turns {
        let path = format!("/openai/v1/responses/resp_{}?stream=true", told.turn(turn));
        let after = |block: &str| Some(format!("&starting_after={}", data(block)["sequence_number"]));
        longest = longest.max(told.cut(&path, after).await);
    }
    assert!(600 < longest, "{longest} events of the long turn");
}

#[actix_web::test]
async fn a_chat_completion_continues_after_every_chunk() {
    let told = all_told().await;
    let mut longest = 0;
    for turn in 1..=told.turns {
        let id = told.turn(turn);
        let path = format!("/openai/v1/chat/completions/chatcmpl-{id}?stream=true&include_usage=true");
        // `[DONE]` has no number.
        let after = |block: &str| {
            let (number, _) = block.strip_prefix("id: ")?.split_once('\n')?;
            Some(format!("&starting_after={number}"))
        };
        longest = longest.max(told.cut(&path, after).await);
    }
    assert!(150 < longest, "{longest} chunks of the long turn");
}

#[actix_web::test]
async fn a_thread_continues_after_every_event() {
    let told = all_told().await;
    let path = format!("/ag-ui/threads/{}?", told.id);
    let count = told.cut(&path, |block| Some(after_event(block))).await;
    assert!(600 < count, "{count} events");
}

pub(super) fn after_event(block: &str) -> String {
    format!("after={}", data(block)["metadata"]["tokenrail"]["cursor"].as_str().unwrap())
}

/// The requests of AG-UI's clients, which they send again to resume. A first turn has no such request here.
#[actix_web::test]
async fn a_run_continues_after_every_event() {
    let told = all_told().await;
    let mut longest = 0;
    for turn in 2..=told.turns {
        let message = json!({"id": "m", "role": "user", "content": PROMPT});
        let body =
            json!({"threadId": told.id.to_string(), "runId": format!("run-{turn}"), "messages": [message]});
        let body = body.to_string();
        let run = async |path: &str| told.harness.post(path, &body).await;
        longest = longest.max(told.cut_stream("/ag-ui?", |block| Some(after_event(block)), run).await);
    }
    assert!(600 < longest, "{longest} events of the long turn");
    assert_eq!(told.harness.store.saved_turns(told.id).len(), told.turns, "no run began again");
}

/// A client reads page by page. Each page begins at its offset, so what follows a cut is the rest.
#[actix_web::test]
async fn the_stream_of_a_journal_continues_after_every_offset() {
    let told = all_told().await;
    let (whole, at) = caught_up(&told.harness, told.id, 0).await;
    assert_eq!((whole.len(), at), (told.events.len(), told.events.len()));
    for number in 1..=whole.len() {
        let (page, next) = page(&told.harness, told.id, number).await;
        assert_eq!(page, whole[number..next], "after {number}");
        assert_eq!(next == number, number == whole.len(), "a page is empty only at the end");
    }
}

/// The messages after this number, and the number of the last one.
pub(super) async fn caught_up(harness: &Harness, id: AgentId, mut number: usize) -> (Vec<String>, usize) {
    let mut messages = Vec::new();
    loop {
        let (page, next) = page(harness, id, number).await;
        if page.is_empty() {
            return (messages, number);
        }
        messages.extend(page);
        number = next;
    }
}

/// The bytes of each message of the page after this number, and the number of the last one.
async fn page(harness: &Harness, id: AgentId, number: usize) -> (Vec<String>, usize) {
    let path = format!("/v1/stream/agents/{id}/events?offset={number:020}");
    let page = harness.get(&path).await;
    assert_eq!(page.status, 200, "{page:?}");
    let messages: Vec<&RawValue> = serde_json::from_str(&page.text).unwrap();
    let messages = messages.into_iter().map(|message| message.get().to_owned()).collect();
    (messages, page.header("stream-next-offset").parse().unwrap())
}

/// Live, after every offset. A deleted agent gets no further event, so its stream ends.
#[actix_web::test]
async fn the_live_streams_of_a_journal_continue_after_every_offset() {
    // With frequent heartbeats, a slow machine would answer a poll before it has read the journal.
    let told = all_told_at(Harness::new()).await;
    let (whole, end) = caught_up(&told.harness, told.id, 0).await;
    told.harness.service.delete(told.id, Deletion::KeepHistory).await.unwrap();
    for number in 0..end {
        let path = format!("/v1/stream/agents/{}/events?offset={number:020}&live=", told.id);
        let poll = told.harness.get(&format!("{path}long-poll")).await;
        let polled = serde_json::from_str(&poll.text);
        let polled: Vec<&RawValue> =
            polled.unwrap_or_else(|error| panic!("after {number}: {error}: {poll:?}"));
        assert!(polled.iter().map(|message| message.get()).eq(&whole[number..number + polled.len()]));
        let next: usize = poll.header("stream-next-offset").parse().unwrap();
        assert_eq!((next, polled.is_empty()), (number + polled.len(), false));

        let mut at = number;
        for block in blocks(&told.harness.get(&format!("{path}sse")).await) {
            let (name, data) = block.trim_end().split_once("\ndata: ").unwrap();
            if name == "event: data" {
                let messages: Vec<&RawValue> = serde_json::from_str(data).unwrap();
                assert!(messages.iter().map(|message| message.get()).eq(&whole[at..at + messages.len()]));
                at += messages.len();
            } else {
                let control: Value = serde_json::from_str(data).unwrap();
                assert_eq!(control["streamNextOffset"], format!("{at:020}"), "after {number}");
            }
        }
        assert_eq!(at, end, "after {number}");
    }
}

/// A text is one entry, whose pieces a client may have in part. Everything else of the rest is the same.
#[actix_web::test]
async fn entries_continue_after_every_number() {
    let told = all_told().await;
    let head = told.events.len();
    let mut all = read(&told.harness, told.id, 0, 200_000).await;
    assert_eq!(joined(read(&told.harness, told.id, 0, 1000).await), all, "page by page");
    for since in 1..=head as u64 {
        if let Some(first) = all.first_mut().filter(|entry| entry["seq"].as_u64() == Some(since)) {
            assert!(first.is_object());
            all.remove(0);
        } else if let EventBody::TextDelta { text, .. } = &told.events[since as usize - 1].body {
            let rest = all[0]["text"].as_str().unwrap().strip_prefix(text.as_str());
            all[0]["text"] = json!(rest.unwrap_or_else(|| panic!("{} has no {text:?}", all[0])));
        }
        assert_eq!(read(&told.harness, told.id, since, 200_000).await, all, "after {since}");
    }
    assert_eq!(all, [json!(null); 0]);
}

/// What comes after a cut is what `read_agent` returns, which the test above compares with the whole.
#[actix_web::test]
async fn a_wait_continues_after_every_number() {
    let told = all_told().await;
    for since in 0..=told.events.len() as u64 {
        let arguments = json!({"agent_id": told.id.to_string(), "since": since, "max_bytes": 200_000});
        let waited = tool(&told.harness, "wait_for_agent", &arguments).await;
        assert_eq!(waited["reason"], "ended", "after {since}");
        assert_eq!(
            waited["entries"],
            json!(read(&told.harness, told.id, since, 200_000).await),
            "after {since}"
        );
    }
}

/// The entries after a number, from as many pages as it takes.
pub(super) async fn read(harness: &Harness, id: AgentId, since: u64, most: u64) -> Vec<Value> {
    let (mut since, mut entries) = (json!(since), Vec::new());
    loop {
        let arguments = json!({"agent_id": id.to_string(), "since": since, "max_bytes": most});
        let page = tool(harness, "read_agent", &arguments).await;
        entries.extend(page["entries"].as_array().unwrap().iter().cloned());
        if page["more"] == false {
            return entries;
        }
        since = page["next_since"].clone();
    }
}

/// Joins the pieces of texts that pages have cut.
pub(super) fn joined(entries: Vec<Value>) -> Vec<Value> {
    let mut joined: Vec<Value> = Vec::new();
    for entry in entries {
        let is_more = |last: &Value| ["kind", "turn", "message"].iter().all(|name| last[name] == entry[name]);
        match joined.last_mut().filter(|last| entry["kind"] == "text" && is_more(last)) {
            Some(last) => {
                last["text"] =
                    json!([&last["text"], &entry["text"]].map(|text| text.as_str().unwrap()).concat());
                last["seq"] = entry["seq"].clone();
            }
            None => joined.push(entry),
        }
    }
    joined
}
