//! Damaged files: the damage is detected or makes no difference. The server never returns a wrong event.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use reqwest::Method;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokenrail_domain::{AgentId, Event, Sequence};
use tokenrail_persistence::{SqliteConfig, SqliteStore, Synchronous};
use tokenrail_ports::{AgentFilter, IAgentRepository as _, IJournal as _, ListBounds, PageLimit, StoreError};

use crate::Chance;
use crate::harness::{TestServer, fake_config};
use crate::judge;

const FILES: [&str; 3] = ["tokenrail.db", "tokenrail.db-wal", "tokenrail.db-shm"];
const FLIPS: u64 = 220;
const CUTS: u64 = 70;
/// One of this many damages is tested with the server too, and not only with its store.
const SERVED_EVERY: u64 = 14;
/// The number of compared events of an agent that was running when the server was killed.
const SAID_BY_ALL: usize = 50;
const WHOLE: PageLimit = PageLimit { events: usize::MAX, bytes: usize::MAX };

/// The content of one agent: its journal, and its displayed events.
pub(super) type Said = (AgentId, Vec<Event>, Vec<Event>);

/// The effect of a damage.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum Found {
    /// The store refused to open, or a read failed.
    Detected,
    Same,
    /// Less content: a damaged log ends at the damage, as after a crash.
    Earlier,
}

/// Two copies of the files: one of a server that was killed, with a log, and a later one of a stopped server.
struct Copies {
    killed: TempDir,
    stopped: TempDir,
    old: TempDir,
}

async fn copies() -> Copies {
    let mut server = TestServer::start();
    let copy = |server: &TestServer| {
        let folder = tempfile::tempdir().unwrap();
        copy_files(&server.data_dir(), folder.path());
        folder
    };
    for script in [json!({ "deltas": 300 }), json!({ "mode": "tool", "deltas": 40 })] {
        server.launch_to_completion(&script).await;
    }
    server.stop();
    let old = copy(&server);
    server.start_again();
    server.launch_to_completion(&json!({ "deltas": 400 })).await;
    let id = server.launch(&json!({ "mode": "hang", "deltas": 50 })).await;
    server.wait_until(&id, |agent| 50 < agent["head"].as_u64().unwrap()).await;
    server.kill_9();
    let killed = copy(&server);
    server.start_again();
    server.post(&format!("/api/agents/{id}/cancel"), &json!({})).await;
    server.wait_for_status(&id, "cancelled").await;
    server.stop();
    Copies { killed, stopped: copy(&server), old }
}

fn copy_files(from: &Path, to: &Path) {
    for name in FILES.into_iter().chain(["Lock"]) {
        if from.join(name).exists() {
            fs::copy(from.join(name), to.join(name)).unwrap();
        }
    }
}

/// The whole content of the store.
pub(super) async fn read(folder: &Path) -> Option<Vec<Said>> {
    let config = SqliteConfig { synchronous: Synchronous::Normal, ..SqliteConfig::new(folder) };
    let store = SqliteStore::open(config).ok()?;
    let read = read_all(&store).await;
    store.close().await;
    read.ok()
}

async fn read_all(store: &SqliteStore) -> Result<Vec<Said>, StoreError> {
    let filter = AgentFilter { limit: usize::MAX, ..AgentFilter::default() };
    let whole = ListBounds { bytes: usize::MAX, field_bytes: usize::MAX };
    let agents = store.list(filter, whole).await?.items;
    let mut all = Vec::new();
    for id in agents.into_iter().map(|listed| listed.agent.id) {
        let events = store.read(id, Sequence::START, WHOLE).await?;
        let messages = store.messages(id, Sequence::START, WHOLE).await?.events;
        all.push((id, events, messages));
    }
    Ok(all)
}

/// Compares the content of a damaged copy with the original.
async fn judged(folder: &Path, truth: &[Said], what: &str) -> Found {
    let Some(read) = read(folder).await else { return Found::Detected };
    if read == truth {
        return Found::Same;
    }
    for (id, events, messages) in &read {
        let (_, there, _) = truth.iter().find(|(other, ..)| other == id).expect("an agent that there was");
        assert!(there.starts_with(events), "{what}: wrong events of {id}");
        assert!(messages.iter().all(|message| events.contains(message)), "{what}: wrong messages of {id}");
    }
    Found::Earlier
}

fn damaged(copy: &TempDir, damage: impl FnOnce(&Path)) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    copy_files(copy.path(), folder.path());
    damage(folder.path());
    folder
}

/// Changes 1 to 64 bytes, in one place or all over the file.
fn flip(file: &Path, chance: &mut Chance) {
    let mut bytes = fs::read(file).unwrap();
    let length = bytes.len() as u64;
    let (count, together) = (1 + chance.below(64), chance.below(2) == 0);
    let start = chance.below(length);
    for index in 0..count {
        let at = if together { (start + index) % length } else { chance.below(length) };
        bytes[at as usize] ^= 1 + chance.below(255) as u8;
    }
    fs::write(file, bytes).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_files_are_detected_and_never_give_a_wrong_event() {
    let copies = copies().await;
    let whole = |copy: &TempDir| damaged(copy, |_| ());
    let truth_killed = read(whole(&copies.killed).path()).await.expect("it is sound");
    let truth_stopped = read(whole(&copies.stopped).path()).await.expect("it is sound");
    let (served_killed, served_stopped) =
        (served(&whole(&copies.killed)).await, served(&whole(&copies.stopped)).await);
    let mut chance = Chance(7);
    let (mut tally, mut refused, mut gave) = ([0; 3], 0, 0);
    for round in 0..FLIPS + CUTS {
        let (copy_is_killed, name): (_, &str) = match round % 4 {
            0 => (true, FILES[0]),
            1 => (true, FILES[1]),
            2 if round % 8 == 2 => (true, FILES[2]),
            _ => (false, FILES[0]),
        };
        let (copy, truth) =
            if copy_is_killed { (&copies.killed, &truth_killed) } else { (&copies.stopped, &truth_stopped) };
        let what = format!("round {round}, {name}");
        let folder = damaged(copy, |folder| {
            let file = folder.join(name);
            if round < FLIPS {
                flip(&file, &mut chance);
            } else {
                let blocks = fs::metadata(&file).unwrap().len() / 512;
                let length = chance.below(blocks) * 512;
                fs::File::options().write(true).open(&file).unwrap().set_len(length).unwrap();
            }
        });
        if round % SERVED_EVERY == 0 {
            let copy = damaged(&folder, |_| ());
            let truth = if copy_is_killed { &served_killed } else { &served_stopped };
            match served(&copy).await {
                Some(given) => {
                    gives_nothing_wrong(&given, truth.as_ref().expect("it is sound"), name, &what);
                    gave += 1;
                }
                None => refused += 1,
            }
        }
        let found = judged(folder.path(), truth, &what).await;
        assert!(
            found != Found::Earlier || name == FILES[1],
            "{what}: events are missing, and nobody says so"
        );
        tally[found as usize] += 1;
    }
    println!("detected, the same, earlier: {tally:?}; the program refused {refused} and served {gave}");
    assert!(0 < refused && 0 < gave, "{refused} were refused, {gave} served");
    assert!((FLIPS + CUTS) / 5 < tally[Found::Detected as usize], "{tally:?}");
}

/// What a real server returns for these files: the events of each agent as written, or `None` if they cannot be read.
type Given = BTreeMap<String, Option<Vec<String>>>;

async fn served(folder: &TempDir) -> Option<Given> {
    let mut server = server_on(folder);
    let doctor = server.command(&["doctor"]).output().unwrap();
    assert!(matches!(doctor.status.code(), Some(0 | 1)), "{doctor:?}");
    let mut serve = server.command(&["serve", "--log", "warn"]);
    let log = server.folder.path().join("log");
    serve.stderr(fs::File::create(&log).unwrap());
    if server.start_by(serve).is_err() {
        let status = server.wait();
        let said = fs::read_to_string(log).unwrap();
        assert_eq!((status.code(), said.contains("is corrupt")), (Some(78), true), "{said}");
        assert_eq!(doctor.status.code(), Some(1), "the doctor finds it too: {doctor:?}");
        return None;
    }
    let answer = server.request(Method::GET, "/api/agents").send().await.unwrap();
    if answer.status() != 200 {
        assert_eq!(answer.status(), 500);
        return Some(Given::new());
    }
    let agents: Vec<Value> = answer.json().await.unwrap();
    let mut given = Given::new();
    for agent in agents {
        let id = agent["agentId"].as_str().unwrap();
        given.insert(id.to_owned(), events(&server, id).await);
    }
    judge::nothing_panicked(&log);
    Some(given)
}

async fn events(server: &TestServer, id: &str) -> Option<Vec<String>> {
    let mut events: Vec<Box<RawValue>> = Vec::new();
    loop {
        let path = format!("/api/agents/{id}/events?since={}", events.len());
        let answer = server.request(Method::GET, &path).send().await.unwrap();
        if answer.status() != 200 {
            assert_eq!(answer.status(), 500, "{id}");
            return None;
        }
        let page: Vec<Box<RawValue>> = answer.json().await.unwrap();
        if page.is_empty() {
            return Some(events.into_iter().map(|event| event.get().to_owned()).collect());
        }
        events.extend(page);
    }
}

fn gives_nothing_wrong(given: &Given, truth: &Given, name: &str, what: &str) {
    for (id, events) in given {
        let Some(events) = events else { continue };
        let there = truth.get(id).and_then(Option::as_ref).expect("an agent that there was");
        // Each start ends a running agent again, at another time.
        let ends_anew = there.first().is_some_and(|prompt| prompt.contains("hang"));
        let (events, there) = if ends_anew {
            (&events[..events.len().min(SAID_BY_ALL)], &there[..SAID_BY_ALL])
        } else {
            (&events[..], &there[..])
        };
        let same = events.iter().zip(there).take_while(|(given, there)| given == there).count();
        let may_end_early = name == FILES[1];
        assert!(
            same == events.len() || may_end_early && same + 2 >= events.len(),
            "{what}: wrong events of {id}"
        );
        assert!(same == there.len() || may_end_early, "{what}: events of {id} are missing");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_copy_is_an_earlier_state_or_detected() {
    let copies = copies().await;
    let truth = read(damaged(&copies.stopped, |_| ()).path()).await.expect("it is sound");
    let old = copies.old.path().join(FILES[0]);
    let swap = |folder: &Path| assert!(fs::copy(&old, folder.join(FILES[0])).is_ok());
    let found = judged(damaged(&copies.stopped, swap).path(), &truth, "an older database").await;
    assert_eq!(found, Found::Earlier, "a copy of a server that was stopped can be put back");
    // Next to the log of a later start.
    judged(damaged(&copies.killed, swap).path(), &truth, "an older database, a newer log").await;
    let newer = |folder: &Path| {
        swap(folder);
        fs::remove_file(folder.join(FILES[2])).unwrap();
    };
    judged(damaged(&copies.killed, newer).path(), &truth, "the same, without the index of the log").await;
}

/// A server on a copy of the files.
fn server_on(folder: &TempDir) -> TestServer {
    let mut server = TestServer::start_with(&fake_config());
    server.stop();
    let data: PathBuf = server.data_dir();
    let token = fs::read(data.join("token")).unwrap();
    server.move_data_to(folder.path());
    fs::create_dir(server.data_dir()).unwrap();
    copy_files(folder.path(), &server.data_dir());
    fs::write(server.data_dir().join("token"), token).unwrap();
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    fs::set_permissions(server.data_dir().join("token"), private).unwrap();
    server
}

#[tokio::test]
async fn a_server_refuses_a_damaged_database_with_code_78_and_leaves_it_as_it_is() {
    let copies = copies().await;
    let length = fs::metadata(copies.stopped.path().join(FILES[0])).unwrap().len();
    for length in [0, 512, 4096, length / 2 / 4096 * 4096] {
        let folder = damaged(&copies.stopped, |folder| {
            fs::File::options().write(true).open(folder.join(FILES[0])).unwrap().set_len(length).unwrap();
        });
        let server = server_on(&folder);
        let before = fs::read(server.data_dir().join(FILES[0])).unwrap();
        let start = server.command(&["serve"]).output().unwrap();
        let said = String::from_utf8_lossy(&start.stderr).into_owned();
        assert_eq!(start.status.code(), Some(78), "{length} bytes: {said}");
        assert!(said.contains("is corrupt"), "{said}");
        assert!(fs::read(server.data_dir().join(FILES[0])).unwrap() == before, "it is not touched");
        assert_eq!(server.command(&["doctor"]).output().unwrap().status.code(), Some(1));
    }
}

#[tokio::test]
async fn a_changed_text_is_a_problem_of_its_agent_alone() {
    let copies = copies().await;
    let folder = damaged(&copies.stopped, |folder| {
        let db = rusqlite::Connection::open(folder.join(FILES[0])).unwrap();
        let newest = "(SELECT max(agent) FROM journal)";
        let sql = format!("UPDATE journal SET payload = zeroblob(length(payload)) WHERE agent = {newest}");
        assert!(0 < db.execute(&sql, []).unwrap());
        let sql = "UPDATE agent_messages SET content = content || '!'
            WHERE agent_id = (SELECT id FROM agents ORDER BY key DESC LIMIT 1)";
        assert!(0 < db.execute(sql, []).unwrap());
    });
    let mut server = server_on(&folder);
    server.start_again();
    let agents = server.get("/api/agents").await;
    let ids: Vec<_> =
        agents.as_array().unwrap().iter().map(|agent| agent["agentId"].as_str().unwrap()).collect();
    for path in ["events", "messages"] {
        let answer =
            server.request(Method::GET, &format!("/api/agents/{}/{path}", ids[0])).send().await.unwrap();
        assert_eq!(answer.status(), 500, "{path}");
        assert!(answer.text().await.unwrap().contains("store_failed"), "{path}");
        assert!(!server.get(&format!("/api/agents/{}/{path}", ids[1])).await.as_array().unwrap().is_empty());
    }
}
