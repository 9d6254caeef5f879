//! Whatever a Socket.IO client posts, its session answers with valid packets or ends, and the server has no error.

use std::time::Duration;

use actix_web::test::TestRequest;
use serde_json::Value;

use super::world::{self, HOST, World};

pub(crate) const WORDS: &[&str] = &[
    "40",
    "41",
    "42[\"subscribe\",{\"agentId\":\"",
    "420[\"unsubscribe\",{\"agentId\":\"",
    "019ab0f5-0000-7000-8000-000000000000",
    "\"since\":0}]",
    "{\"token\":\"\",\"since\":{",
    "43",
    "44",
    "451-[",
    "/admin,",
    "18446744073709551616",
    "\\ud800",
    "\u{1e}",
    "\u{1e}3",
    "\u{1e}1",
    "\u{1e}b",
    "2probe",
];

const PATH: &str = "/socket.io/?EIO=4&transport=polling";
/// A request with an answer that the input can hardly cause. Its answer comes after those of the input.
const LAST: &str = "4277177[\"unsubscribe\",{\"agentId\":\"019ab0f5-0000-7000-8000-000000000000\"}]";
const LAST_ANSWER: &str = "4377177[";
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn run(data: &[u8]) {
    world::with(async |world, _| {
        let all = tokio::time::timeout(PATIENCE, talk(&world, data)).await;
        all.expect("it is answered or ends");
    });
}

async fn talk(world: &World, data: &[u8]) {
    let open = ask(world, TestRequest::get().uri(PATH)).await.1;
    let open: Value = serde_json::from_str(open.strip_prefix('0').expect("a handshake")).expect("JSON");
    let uri = format!("{PATH}&sid={}", open["sid"].as_str().expect("an id"));
    let body = data.to_vec();
    let (status, _) = ask(world, TestRequest::post().uri(&uri).set_payload(body)).await;
    assert!(matches!(status, 200 | 400 | 413), "{status}");
    // The session may have ended.
    ask(world, TestRequest::post().uri(&uri).set_payload(LAST)).await;
    loop {
        let (status, packets) = ask(world, TestRequest::get().uri(&uri)).await;
        if status == 400 {
            let error: Value = serde_json::from_str(&packets).expect("JSON");
            assert_eq!(error["code"], 1, "{error}");
            return;
        }
        assert_eq!(status, 200, "{packets}");
        let packets: Vec<&str> = packets.split('\u{1e}').collect();
        for packet in &packets {
            check(packet);
        }
        if packets.iter().any(|packet| *packet == "1" || packet.starts_with(LAST_ANSWER)) {
            return;
        }
    }
}

async fn ask(world: &World, request: TestRequest) -> (u16, String) {
    let answer = world.call(request.insert_header(("host", HOST))).await;
    (answer.status, String::from_utf8(answer.body).expect("UTF-8"))
}

/// Checks a packet of the server.
pub(super) fn check(packet: &str) {
    let json = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_else(|_| panic!("{packet}"));
    match packet.split_at(packet.len().min(2)) {
        ("40", connected) => assert!(json(connected)["sid"].is_string(), "{packet}"),
        ("42", event) => assert!(json(event)[0].is_string(), "{packet}"),
        ("43", ack) => {
            let list = ack.trim_start_matches(|digit: char| digit.is_ascii_digit());
            assert!(json(list)[0]["ok"].is_boolean(), "{packet}");
        }
        ("44", error) => {
            let object = error.find('{').map_or("", |at| &error[at..]);
            assert!(json(object)["message"].is_string(), "{packet}");
        }
        _ => assert!(matches!(packet, "1" | "2" | "6"), "{packet}"),
    }
}
