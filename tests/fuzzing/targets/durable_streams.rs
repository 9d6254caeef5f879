//! Whatever a client of Durable Streams asks for, it gets exactly the events after its offset, or the documented
//! problem: page by page, by long polls and as an event stream.

use actix_web::http::Method;
use actix_web::http::header::HeaderValue;
use actix_web::test::TestRequest;
use serde_json::Value;

use super::world::{self, Answer, HOST, World};

pub(crate) const WORDS: &[&str] = &[
    "offset=",
    "offset=-1",
    "offset=now",
    "&offset=00000000000000000001",
    "00000000000000000003",
    "18446744073709551615",
    "18446744073709551616",
    "live=long-poll",
    "&live=sse",
    "&live=",
    "&cursor=",
    "cursor=3403341",
    "999999999999999",
    "&",
    "=",
    "%",
    "%6e",
    "%ff",
    "+",
    "\n",
    "$TAG",
    "W/",
    "*",
    ",",
    "\"",
];

const UNKNOWN: &str = "019ab0f5-0000-7000-8000-000000000000";
/// Longer cursors are not from this server.
const CURSOR_DIGITS: usize = 15;

/// The first byte says which method and which agent. Then the query, up to the end of the line. Each further line is
/// the value of an `If-None-Match`; `$TAG` stands for the entity tag of the page.
pub(crate) fn run(data: &[u8]) {
    let Some((way, rest)) = data.split_first() else { return };
    let mut lines = rest.split(|byte| *byte == b'\n');
    let query = encoded(lines.next().unwrap_or_default());
    let method = if way & 1 == 0 { Method::GET } else { Method::HEAD };
    world::with(async |world, agent| {
        let closed = world.deleted().await;
        let (id, stream) = match way >> 1 & 3 {
            0 | 1 => (agent.to_string(), Stream { head: head(&world, agent).await, is_closed: false }),
            2 => (closed.to_string(), Stream { head: head(&world, closed).await, is_closed: true }),
            _ => (UNKNOWN.to_owned(), Stream { head: u64::MAX, is_closed: false }),
        };
        let uri = format!("/v1/stream/agents/{id}/events?{query}");
        let wish = Wish::of(&query, id == UNKNOWN, stream.head);
        let first = ask(&world, &method, &uri, &[]).await;
        stream.check(first.as_ref(), &method, &wish);
        let tag = first.and_then(|answer| header(&answer, "etag"));
        let known: Vec<_> = lines.filter_map(|line| value(line, tag.as_deref())).collect();
        let again = ask(&world, &method, &uri, &known).await;
        let is_known = matches!(wish, Wish::Page { .. }) && tag.is_some_and(|tag| knows(&known, &tag));
        match again {
            Some(answer) if is_known => {
                assert_eq!((answer.status, answer.body.len()), (304, 0), "{answer:?}");
                assert!(header(&answer, "stream-next-offset").is_some(), "{answer:?}");
            }
            again => stream.check(again.as_ref(), &method, &wish),
        }
    });
}

async fn head(world: &World, agent: tokenrail_domain::AgentId) -> u64 {
    world.journal(agent).await.len() as u64
}

/// `None` if the response waits for more.
async fn ask(world: &World, method: &Method, uri: &str, known: &[HeaderValue]) -> Option<Answer> {
    let request = TestRequest::with_uri(uri).method(method.clone()).insert_header(("host", HOST));
    let add =
        |request: TestRequest, value: &HeaderValue| request.append_header(("if-none-match", value.clone()));
    world.call_at_once(known.iter().fold(request, add)).await
}

/// The query as a client can send it: the web server itself refuses other bytes.
fn encoded(query: &[u8]) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~=&%+;:@/?!$'()*,".contains(&byte);
    let encode = |byte: &u8| match *byte {
        byte if is_plain(byte) => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    query.iter().map(encode).collect()
}

fn value(line: &[u8], tag: Option<&str>) -> Option<HeaderValue> {
    let line = match std::str::from_utf8(line) {
        Ok(text) => text.replace("$TAG", tag.unwrap_or_default()).into_bytes(),
        Err(_) => line.to_vec(),
    };
    HeaderValue::from_bytes(&line).ok()
}

fn knows(known: &[HeaderValue], tag: &str) -> bool {
    let tags = known.iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    tags.map(str::trim).any(|known| known == "*" || known == tag || known.strip_prefix("W/") == Some(tag))
}

fn header(answer: &Answer, name: &str) -> Option<String> {
    answer.headers.get(name).map(|value| value.to_str().expect("text").to_owned())
}

/// What a query asks for, as the documentation says.
#[derive(Debug, PartialEq)]
enum Wish {
    Refused(u16, &'static str),
    Page { from: Option<u64> },
    Poll { from: u64, cursor: u64 },
    Stream { from: u64, cursor: u64 },
}

impl Wish {
    fn of(query: &str, is_unknown: bool, head: u64) -> Self {
        let pairs: Vec<_> = query.split('&').filter(|pair| !pair.is_empty()).map(pair).collect();
        let all = |name: &str| -> Vec<&str> {
            let named = pairs.iter().filter(|(key, _)| key == name);
            named.map(|(_, value)| value.as_str()).collect()
        };
        let live = all("live").first().copied();
        if !matches!(live, None | Some("long-poll" | "sse")) {
            return Self::Refused(400, "bad_request");
        }
        let from = match *all("offset") {
            [] if live.is_none() => Some(Some(0)),
            ["-1"] => Some(Some(0)),
            ["now"] => Some(None),
            [text] if text.len() == 20 && text.bytes().all(|byte| byte.is_ascii_digit()) => {
                text.parse().ok().map(Some)
            }
            _ => None,
        };
        let number = |text: &&str| text.len() <= CURSOR_DIGITS && text.bytes().all(|it| it.is_ascii_digit());
        let cursor = all("cursor").first().copied().filter(number);
        let cursor = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
        match (from, live) {
            (None, _) => Self::Refused(400, "cursor_malformed"),
            _ if is_unknown => Self::Refused(404, "not_found"),
            (Some(Some(from)), _) if head < from => Self::Refused(409, "cursor_ahead"),
            (Some(from), None) => Self::Page { from },
            (Some(from), Some("sse")) => Self::Stream { from: from.unwrap_or(head), cursor },
            (Some(from), Some(_)) => Self::Poll { from: from.unwrap_or(head), cursor },
        }
    }
}

/// A parameter, decoded.
fn pair(pair: &str) -> (String, String) {
    let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
    (decoded(key), decoded(value))
}

fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, after @ ..] = rest {
        let hex = after.get(..2).filter(|two| *first == b'%' && two.iter().all(u8::is_ascii_hexdigit));
        let byte = hex.and_then(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(if *first == b'+' { b' ' } else { *first }));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

struct Stream {
    head: u64,
    is_closed: bool,
}

impl Stream {
    /// `None`: the response waits.
    fn check(&self, answer: Option<&Answer>, method: &Method, wish: &Wish) {
        let Some(answer) = answer else {
            let waits = matches!(wish, Wish::Poll { from, .. } if *from == self.head) && !self.is_closed;
            assert!(waits && *method == Method::GET, "{wish:?} waits");
            return;
        };
        let said = String::from_utf8_lossy(&answer.body);
        match wish {
            // The metadata of a stream is the same for any offset.
            Wish::Page { .. } | Wish::Poll { .. } | Wish::Stream { .. } | Wish::Refused(409, _)
                if *method == Method::HEAD =>
            {
                assert_eq!((answer.status, &*said), (200, ""), "{answer:?}");
                self.check_end(answer);
            }
            Wish::Refused(status, code) => check_problem(answer, method, *status, code),
            Wish::Page { from } => {
                assert_eq!(answer.status, 200, "{answer:?}");
                assert_eq!(messages(&said), self.head - from.unwrap_or(self.head), "{said}");
                assert_eq!(header(answer, "etag").is_some(), from.is_some(), "{answer:?}");
                self.check_end(answer);
            }
            Wish::Poll { from, cursor } => {
                assert_eq!(answer.status, if *from == self.head { 204 } else { 200 }, "{answer:?}");
                assert!(*from < self.head || self.is_closed, "{answer:?}");
                assert_eq!(messages(&said), self.head - from, "{said}");
                let next = header(answer, "stream-cursor").and_then(|next| next.parse().ok());
                assert!(next.is_some_and(|next: u64| *cursor < next), "{answer:?}");
                self.check_end(answer);
            }
            Wish::Stream { from, cursor } => self.check_stream(answer, *from, *cursor),
        }
    }

    fn check_end(&self, answer: &Answer) {
        assert_eq!(header(answer, "stream-next-offset"), Some(format!("{:020}", self.head)), "{answer:?}");
        assert_eq!(header(answer, "stream-closed").is_some(), self.is_closed, "{answer:?}");
    }

    fn check_stream(&self, answer: &Answer, from: u64, cursor: u64) {
        let said = String::from_utf8_lossy(&answer.body);
        assert_eq!((answer.status, answer.whole), (200, self.is_closed), "{answer:?}");
        let (mut read, mut last) = (0, Value::Null);
        for block in said.split("\n\n").filter(|block| !block.is_empty() && !block.starts_with(':')) {
            if let Some(data) = block.strip_prefix("event: data\ndata: ") {
                read += messages(data);
                last = Value::Null;
                continue;
            }
            let control = block.strip_prefix("event: control\ndata: ").unwrap_or_else(|| panic!("{said}"));
            last = serde_json::from_str(control).unwrap_or_else(|error| panic!("{error}: {said}"));
            let next = last["streamCursor"].as_str().and_then(|next| next.parse::<u64>().ok());
            let is_end = last["streamClosed"] == true;
            assert!(is_end || next.is_some_and(|next| cursor < next), "{said}");
        }
        assert_eq!(read, self.head - from, "{said}");
        assert_eq!(last["streamNextOffset"], format!("{:020}", self.head), "{said}");
        assert_eq!((&last["upToDate"], last["streamClosed"] == true), (&Value::Bool(true), self.is_closed));
    }
}

/// How many messages a list has.
fn messages(list: &str) -> u64 {
    list.matches("\"sequenceNumber\":").count() as u64
}

fn check_problem(answer: &Answer, method: &Method, status: u16, code: &str) {
    assert_eq!(answer.status, status, "{answer:?}");
    if *method == Method::HEAD {
        return;
    }
    assert_eq!(header(answer, "content-type").as_deref(), Some("application/problem+json"), "{answer:?}");
    let problem: Value = serde_json::from_slice(&answer.body).expect("a problem is JSON");
    assert_eq!(
        (&problem["code"], &problem["status"]),
        (&Value::from(code), &Value::from(status)),
        "{problem}"
    );
    assert!(problem["detail"].is_string(), "{problem}");
}
