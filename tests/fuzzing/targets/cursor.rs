//! A cursor is an integer up to the head, or it is refused: in a query and in `Last-Event-ID`. The same holds for the
//! offset of a stream, which has 20 digits.

use actix_web::http::header::HeaderValue;
use actix_web::test::TestRequest;

use super::world::{self, Answer, HOST, World};

pub(crate) const WORDS: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "4",
    "5",
    "18446744073709551615",
    "18446744073709551616",
    "-1",
    "+1",
    " 1",
    "1 ",
    "1.0",
    "1e0",
    "0x1",
    "\u{661}",
    "null",
    "%",
    "&",
    "#",
    "1&since=2",
    "\0",
    "00000000000000000000000000000001",
    "00000000000000000002",
    "00000000000000000005",
    "00000000000000000006",
    "99999999999999999999",
    "now",
    "&offset=now",
    "&live=",
];

pub(crate) fn run(data: &[u8]) {
    world::with(async |world, agent| {
        let path = format!("/api/agents/{agent}/events");
        let head = world.journal(agent).await.len() as u64;
        let query = data.iter().fold(String::new(), |query, byte| query + &format!("%{byte:02X}"));
        let request = TestRequest::get().uri(&format!("{path}?since={query}"));
        let json = send(&world, request).await;
        // Invalid UTF-8 is not a number either. The server does not distinguish the two errors.
        check(&json, std::str::from_utf8(data).ok(), head, None);
        let stream = format!("/v1/stream/agents/{agent}/events?offset={query}");
        check_page(&send(&world, TestRequest::get().uri(&stream)).await, data, head);

        let Ok(value) = HeaderValue::from_bytes(data) else { return };
        for kind in ["text/event-stream", "application/json"] {
            let request = TestRequest::get().uri(&format!("{path}?since=1"));
            let request = request.insert_header(("accept", kind));
            let answer = send(&world, request.insert_header(("last-event-id", value.clone()))).await;
            match kind {
                "application/json" => check(&answer, Some("1"), head, None),
                _ => check(&answer, value.to_str().ok(), head, Some(())),
            }
        }
    });
}

async fn send(world: &World, request: TestRequest) -> Answer {
    world.call(request.insert_header(("host", HOST))).await
}

fn check(answer: &Answer, text: Option<&str>, head: u64, stream: Option<()>) {
    let said = String::from_utf8_lossy(&answer.body);
    let digits = text.filter(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()));
    // A number of more than 64 bits is not a cursor.
    let cursor = digits.and_then(|text| text.parse::<u64>().ok());
    match cursor {
        None => assert_eq!(answer.status, 400, "{text:?}: {said}"),
        Some(cursor) if head < cursor => assert_eq!(answer.status, 409, "{text:?}: {said}"),
        Some(cursor) if stream.is_some() && cursor == head => assert_eq!(answer.status, 204, "{said}"),
        Some(cursor) => {
            assert_eq!(answer.status, 200, "{text:?}: {said}");
            assert!(answer.whole, "the agent has ended");
            let (each, number_of) = match stream {
                // The first block has no data. It contains the cursor for a reconnect in case nothing more comes.
                Some(()) => ("\ndata: ", "\nid: "),
                None => ("\"sequenceNumber\":", "\"sequenceNumber\":"),
            };
            assert_eq!(said.matches(each).count() as u64, head - cursor, "{said}");
            let first = cursor + u64::from(stream.is_none());
            for number in first..=head {
                assert!(said.contains(&format!("{number_of}{number}")), "{number} of {said}");
            }
        }
    }
}

/// Checks a page of a stream.
fn check_page(answer: &Answer, offset: &[u8], head: u64) {
    let said = String::from_utf8_lossy(&answer.body);
    let is_number = offset.len() == 20 && offset.iter().all(u8::is_ascii_digit);
    let from = match offset {
        b"-1" => Some(0),
        b"now" => Some(head),
        _ if is_number => std::str::from_utf8(offset).ok().and_then(|digits| digits.parse().ok()),
        _ => None,
    };
    match from {
        None => assert_eq!(answer.status, 400, "{offset:?}: {said}"),
        Some(from) if head < from => assert_eq!(answer.status, 409, "{offset:?}: {said}"),
        Some(from) => {
            assert_eq!(answer.status, 200, "{offset:?}: {said}");
            assert_eq!(said.matches("\"sequenceNumber\":").count() as u64, head - from, "{said}");
            let next = answer.headers.get("stream-next-offset").and_then(|next| next.to_str().ok());
            assert_eq!(next, Some(&*format!("{head:020}")));
        }
    }
}
