//! Images with a message: from the client to the agent, and back to every client.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::{TestServer, write_script};
use crate::model_server::{ModelServer, Reply};
use crate::real_agents;

/// Speaks the two-way protocol of Claude Code: it keeps each prompt in the file `asked`, and idles for the next one.
const IDLING: &str = r#"#!/bin/sh
[ "$1" = --version ] && exit
while read -r line; do
  printf '%s\n' "$line" >> asked
  echo '{"type":"system","subtype":"init","session_id":"s-1"}'
  echo '{"type":"result","subtype":"success","is_error":false,"result":"'$$'"}'
done
"#;

/// Does the same for one prompt of any length.
const ONCE: &str = r#"#!/bin/sh
[ "$1" = --version ] && exit
head -n 1 > asked
echo '{"type":"system","subtype":"init","session_id":"s-1"}'
echo '{"type":"result","subtype":"success","is_error":false,"result":"done"}'
"#;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n a picture";
const GIF: &[u8] = b"GIF89a another one";

/// A server whose type `seeing` is this script.
fn server(script: &str) -> TestServer {
    TestServer::start_with(&type_of(script))
}

fn type_of(script: &str) -> String {
    let path = tempfile::tempdir().unwrap().keep().join("agent");
    write_script(&path, script);
    let program = path.display();
    format!("[agents.seeing]\nformat = \"claude-two-way\"\nargs = []\nprogram = \"{program}\"\n")
}

/// The configuration of a type `seeing`, whose agents read one message with images.
pub(crate) fn type_that_sees_once() -> String {
    type_of(ONCE)
}

fn sent(image: &[u8]) -> Value {
    json!({ "mediaType": "image/png", "data": STANDARD.encode(image) })
}

/// An image as the program gets it.
fn block(media_type: &str, image: &[u8]) -> Value {
    let source = json!({ "type": "base64", "media_type": media_type, "data": STANDARD.encode(image) });
    json!({ "type": "image", "source": source })
}

async fn launch(server: &TestServer, images: &[Value]) -> String {
    let body = json!({ "type": "seeing", "prompt": "What is this?", "images": images });
    let (status, agent) = server.post("/api/agents", &body).await;
    assert_eq!(status, StatusCode::CREATED, "{agent}");
    agent["id"].as_str().unwrap().to_owned()
}

async fn ended(server: &TestServer, id: &str, turn: u64) {
    let agent = server.wait_until(id, |agent| agent["turn"] == turn && agent["endedAt"].is_string()).await;
    assert_eq!(agent["status"], "completed", "{agent}");
}

/// The contents of the messages that the program got.
fn asked(server: &TestServer, id: &str) -> Vec<Value> {
    let file = server.data_dir().join("work").join(id).join("asked");
    let lines = fs::read_to_string(file).unwrap();
    let content = |line: &str| serde_json::from_str::<Value>(line).unwrap()["message"]["content"].clone();
    lines.lines().map(content).collect()
}

async fn image(server: &TestServer, id: &str, place: &str) -> Vec<u8> {
    let path = format!("/api/agents/{id}/turns/{place}");
    let answer = server.request(Method::GET, &path).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK, "{path}");
    answer.bytes().await.unwrap().to_vec()
}

/// A server whose agents of the type `seeing` idle after each message.
pub(crate) fn with_idling_agents() -> TestServer {
    server(IDLING)
}

fn files_of_runs(server: &TestServer) -> Vec<PathBuf> {
    let folders = fs::read_dir(server.data_dir().join("runs")).unwrap().map(|entry| entry.unwrap().path());
    let files =
        |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    let is_image = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("image-");
    folders.flat_map(files).filter(is_image).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_sees_the_images_of_each_message_and_clients_see_them_after_a_crash() {
    let mut server = server(IDLING);
    let id = launch(&server, &[sent(PNG), sent(GIF)]).await;
    ended(&server, &id, 1).await;
    let text = json!({ "type": "text", "text": "What is this?" });
    assert_eq!(asked(&server, &id), [json!([block("image/png", PNG), block("image/gif", GIF), text])]);

    let messages = format!("/api/agents/{id}/messages");
    let (status, told) = server.post(&messages, &json!({ "content": "And now?" })).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{told}");
    ended(&server, &id, 2).await;
    let (status, told) = server.post(&messages, &json!({ "content": "This?", "images": [sent(GIF)] })).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{told}");
    ended(&server, &id, 3).await;
    let third = json!([block("image/gif", GIF), { "type": "text", "text": "This?" }]);
    assert_eq!(asked(&server, &id)[1..], [json!("And now?"), third]);
    let results: Vec<Value> = server.events(&id).await;
    let pids = results.iter().filter(|event| event["metadata"]["eventType"] == "result");
    let pids: Vec<_> = pids.map(|event| event["content"].clone()).collect();
    assert!(pids.len() == 3 && pids.iter().all(|pid| *pid == pids[0]), "one process: {pids:?}");
    assert_eq!(files_of_runs(&server), [] as [PathBuf; 0], "the process has read them");

    server.kill_and_start_again();
    assert_eq!(image(&server, &id, "1/images/1").await, GIF);
    assert_eq!(image(&server, &id, "3/images/0").await, GIF);
    let page = server.get(&messages).await;
    let summaries = json!([{ "mediaType": "image/png", "bytes": PNG.len() }, { "mediaType": "image/gif", "bytes": GIF.len() }]);
    assert_eq!(page[0]["metadata"]["images"], summaries);
}

/// As many and as large as the limits allow.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_largest_message_arrives_as_it_was_sent() {
    let server = server(ONCE);
    let large = |mark: u8, bytes: usize| [GIF, &vec![mark; bytes - GIF.len()]].concat();
    let largest = 3_932_160;
    // The others share what is left of the sum.
    let (rest, others) = (20_971_520 - 5 * largest, 3);
    let sizes = [largest; 5].into_iter().chain((0..others).map(|at| (rest + at) / others));
    let images: Vec<Vec<u8>> = (0..).zip(sizes).map(|(mark, bytes)| large(mark, bytes)).collect();
    assert_eq!(images.iter().map(Vec::len).sum::<usize>(), 20_971_520);
    let sent: Vec<Value> = images.iter().map(|image| sent(image)).collect();
    let id = launch(&server, &sent).await;
    ended(&server, &id, 1).await;
    let asked = asked(&server, &id);
    for (position, of_turn) in images.iter().enumerate() {
        assert!(asked[0][position] == block("image/gif", of_turn), "image {position}");
        assert!(image(&server, &id, &format!("1/images/{position}")).await == *of_turn, "image {position}");
    }
    assert_eq!(files_of_runs(&server), [] as [PathBuf; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn images_move_with_an_exported_agent_and_leave_with_a_purged_one() {
    let mut server = server(ONCE);
    let id = launch(&server, &[sent(PNG)]).await;
    ended(&server, &id, 1).await;
    let export = server.request(Method::GET, &format!("/api/agents/{id}/export")).send().await.unwrap();
    let file = export.text().await.unwrap();
    let import =
        server.request(Method::POST, "/api/agents/import").header("content-type", "application/json");
    let imported: Value = import.body(file).send().await.unwrap().json().await.unwrap();
    let copy = imported["id"].as_str().unwrap();
    assert_eq!(image(&server, copy, "1/images/0").await, PNG);

    for id in [&*id, copy] {
        let purge = server.request(Method::DELETE, &format!("/api/agents/{id}?purge=true"));
        assert_eq!(purge.send().await.unwrap().status(), StatusCode::NO_CONTENT);
    }
    server.stop();
    assert!(!holds(&server.data_dir(), PNG), "no trace is left");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_has_lost_an_image_moves_to_another_server_with_the_rest() {
    let (mut from, to) = (server(ONCE), server(ONCE));
    let id = launch(&from, &[sent(PNG), sent(GIF)]).await;
    ended(&from, &id, 1).await;
    from.stop();
    let database = rusqlite::Connection::open(from.data_dir().join("tokenrail.db")).unwrap();
    assert_eq!(database.execute("DELETE FROM prompt_images WHERE position = 0", []).unwrap(), 1);
    drop(database);
    from.start_again();
    let file = from.folder.path().join("agent.json");
    let exported = from.command(&["export", &id, "--output", file.to_str().unwrap()]).output().unwrap();
    assert!(exported.status.success(), "{}", String::from_utf8_lossy(&exported.stderr));
    let imported = to.command(&["import"]).arg(&file).output().unwrap();
    let copy = String::from_utf8(imported.stdout).unwrap();
    let copy = copy.trim();
    assert!(imported.status.success(), "{}", String::from_utf8_lossy(&imported.stderr));
    assert_eq!(image(&to, copy, "1/images/1").await, GIF);
    let report = to.command(&["doctor", "--json"]).output().unwrap();
    let report = String::from_utf8(report.stdout).unwrap();
    let is_sound = |line: &str| line.contains("\"database\"") && line.contains("\"ok\"");
    assert!(report.lines().any(is_sound), "{report}");
}

/// Whether a file below the folder has these bytes.
pub(crate) fn holds(folder: &Path, word: &[u8]) -> bool {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).any(|path| {
        if path.is_dir() {
            holds(&path, word)
        } else {
            memchr::memmem::find(&fs::read(path).unwrap(), word).is_some()
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_commands_send_images_too() {
    let server = server(IDLING);
    let (png, gif) = (server.folder.path().join("a.png"), server.folder.path().join("b.gif"));
    let svg = server.folder.path().join("c.png");
    for (path, bytes) in [(&png, PNG), (&gif, GIF), (&svg, b"<svg/>")] {
        fs::write(path, bytes).unwrap();
    }
    let run = |args: &[&str], images: &[&Path]| {
        let mut command = server.command(args);
        for image in images {
            command.arg("--image").arg(image);
        }
        let output = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
    };
    let (code, id, said) = run(&["run", "--type", "seeing", "--detach", "What is this?"], &[&png, &gif]);
    assert_eq!(code, 0, "{said}");
    let id = id.trim();
    ended(&server, id, 1).await;
    let (code, _, said) = run(&["send", id, "And this?"], &[&gif]);
    assert_eq!(code, 0, "{said}");
    let text = |text: &str| json!({ "type": "text", "text": text });
    let first = json!([block("image/png", PNG), block("image/gif", GIF), text("What is this?")]);
    assert_eq!(asked(&server, id), [first, json!([block("image/gif", GIF), text("And this?")])]);
    let (code, shown, _) = run(&["tail", id], &[]);
    assert_eq!(code, 0);
    assert!(
        shown.contains("> What is this? [2 images]") && shown.contains("> And this? [1 image]"),
        "{shown}"
    );

    let (code, _, said) = run(&["send", id, "Draw"], &[&svg]);
    assert_eq!(code, 2);
    assert!(said.contains("c.png: the file is not a PNG, JPEG, GIF or WebP image"), "{said}");
    let (code, _, said) = run(&["send", id, "Draw"], &[Path::new("/nowhere.png")]);
    assert_eq!(code, 2);
    assert!(said.contains("--image /nowhere.png: "), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_that_cannot_see_refuse_images() {
    let server = server(ONCE);
    let body = json!({ "type": "claude-code-one-way", "prompt": "x", "images": [sent(PNG)] });
    let (status, problem) = server.post("/api/agents", &body).await;
    assert_eq!((status, &problem["code"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("images_not_accepted")));
    let types = server.get("/api/agent-types").await;
    for kind in types.as_array().unwrap() {
        let sees = ["seeing", "claude-code", "codex"].contains(&kind["type"].as_str().unwrap());
        let runner = kind["format"] == "acp";
        assert_eq!(kind["can"]["images"], json!(sees || runner), "{kind}");
    }
}

/// A PNG image of 4 by 3 pixels in one colour, in base64.
pub(crate) const SMALL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAQAAAADCAIAAAA7ljmRAAAAEElEQVR4nGM4IScHRww4OQD1xwwxB+utmQAAAABJRU5ErkJggg==";

/// A real program passes an image on to its model: with the first message of its process, and with a later one.
pub(crate) async fn reach_the_model(agent: &real_agents::Agent) {
    let model = ModelServer::start([Reply::text(["A colour."]), Reply::text(["The same."])]);
    let (server, _home) = agent.start(&model);
    let images = json!([{ "data": SMALL }]);
    let body = json!({ "type": agent.kind, "prompt": "What is in this image?", "images": images });
    let (status, launched) = server.post("/api/agents", &body).await;
    assert_eq!(status, StatusCode::CREATED, "{launched}");
    let id = launched["id"].as_str().unwrap();
    let ended = real_agents::ended(&server, id).await;
    assert_eq!(ended["status"], "completed", "{ended}");
    let times = |request: &crate::model_server::Request| {
        // Programs may encode an image again, so only its beginning is the same.
        request.body().to_string().matches(&SMALL[..30]).count()
    };
    let asked = |text: &str| {
        let requests = model.requests();
        let request = requests.iter().rev().find(|request| request.body().to_string().contains(text));
        request.cloned().unwrap_or_else(|| panic!("{requests:?}"))
    };
    assert_eq!(times(&asked("What is in this image?")), 1);

    let body = json!({ "content": "And in this one?", "images": images });
    let (status, told) = server.post(&format!("/api/agents/{id}/messages"), &body).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{told}");
    let done = |agent: &Value| agent["turn"] == 2 && agent["endedAt"].is_string();
    let ended = server.wait_within(real_agents::SLOW, id, done).await;
    assert_eq!(ended["status"], "completed", "{ended}");
    assert_eq!(times(&asked("And in this one?")), 2, "also that of the first message");
}
