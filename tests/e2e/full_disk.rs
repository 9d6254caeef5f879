//! A disk that is full or read-only: the server reports what is affected, and no saved output is lost.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::{PATIENCE, TestServer, assert_dense, fake_config, numbers, processes_of_agent, text_of};

#[tokio::test]
async fn a_read_only_folder_stops_the_start_with_a_small_disk() {
    let mount = Mounted::tmpfs("size=1m,ro");
    refuses_to_start(mount.0.path());
}

fn refuses_to_start(folder: &std::path::Path) {
    let mut command = std::process::Command::new(crate::harness::program());
    command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(folder);
    let output = command.current_dir("/").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("is not writable"), "{said}");
}

#[tokio::test]
async fn a_full_disk_delays_and_loses_nothing_with_a_small_disk() {
    let mount = Mounted::tmpfs("size=24m");
    let server = server_on(&mount, "");
    let ballast = mount.0.path().join("ballast");
    let gate = server.folder.path().join("gate");
    let id = server.launch(&json!({ "deltas": 30_000, "gate": gate, "gate_after": 10 })).await;
    server.wait_until(&id, |agent| 10 < agent["head"].as_u64().unwrap()).await;
    fill(&ballast);
    std::fs::write(&gate, "").unwrap();
    until(async || 0 < write_retries(&server).await).await;
    // The agent's output does not fit either, so the agent is ended after the configured wait. Its supervisor still has
    // room to record how it ended.
    until(async || processes_of_agent(&id).is_empty()).await;
    assert_eq!(server.get(&format!("/api/agents/{id}")).await["status"], "running", "reading goes on");
    let (status, problem) = server.post("/api/agents", &json!({ "type": "fake", "prompt": "{}" })).await;
    assert_eq!((status.as_u16(), &problem["code"]), (507, &json!("storage_full")));
    assert_eq!(ready(&server).await, StatusCode::INSUFFICIENT_STORAGE);

    std::fs::remove_file(&ballast).unwrap();
    let agent = server.wait_until(&id, |agent| agent["endedAt"].is_string()).await;
    assert_eq!(agent["status"], "failed");
    assert_full(&agent["error"]);
    let events = server.events(&id).await;
    assert_dense(&events);
    let text = text_of(&events);
    assert!(numbers(30_000).starts_with(&text) && !text.is_empty(), "{text}");
    let lost = agent["error"]["message"].as_str().unwrap();
    assert!(lost.contains("bytes of the agent's output were lost"), "{lost}");
    assert_eq!(ready(&server).await, StatusCode::OK);
    server.launch_to_completion(&json!({ "deltas": 3 })).await;
}

#[tokio::test]
async fn an_agent_whose_output_fills_the_disk_is_ended_and_gives_its_room_back_with_a_small_disk() {
    let mount = Mounted::tmpfs("size=24m");
    let server = server_on(&mount, "");
    let id = server.launch(&json!({ "deltas": 1_000_000 })).await;
    let agent = server.wait_until(&id, |agent| agent["endedAt"].is_string()).await;
    assert_eq!(agent["status"], "failed");
    assert_full(&agent["error"]);
    let lost = agent["error"]["message"].as_str().unwrap();
    assert!(lost.contains("bytes of the agent's output were lost"), "{lost}");
    assert!(processes_of_agent(&id).is_empty());
    let events = server.events(&id).await;
    assert_dense(&events);
    let text = text_of(&events);
    assert!(numbers(1_000_000).starts_with(&text) && !text.is_empty());
    // The next agent runs although no room was made by hand.
    until(async || ready(&server).await == StatusCode::OK).await;
    server.launch_to_completion(&json!({ "deltas": 3 })).await;
}

/// The output fits into the spool, but not into the journal, because it begins with a message longer than the free
/// space.
#[tokio::test]
async fn a_turn_whose_output_fits_the_spool_and_not_the_journal_ends_with_a_small_disk() {
    let mount = Mounted::tmpfs("size=24m");
    let mut server = server_on(
        &mount,
        r#"[agents.text]
program = "/bin/sh"
args = ["-c", "seq -f %058.0f 150000"]
format = "text"
pass_env = ["PATH"]
"#,
    );
    let (status, launched) = server.post("/api/agents", &json!({ "type": "text", "prompt": "go" })).await;
    assert_eq!(status, StatusCode::CREATED, "{launched}");
    let id = launched["id"].as_str().unwrap().to_owned();
    let agent = server.wait_until(&id, |agent| agent["endedAt"].is_string()).await;
    assert_eq!(agent["status"], "failed");
    assert_eq!(agent["error"]["code"], "storage_full", "{agent}");
    assert_dense(&server.events(&id).await);
    until(async || std::fs::read_dir(server.data_dir().join("runs")).unwrap().next().is_none()).await;
    // The log is emptied when nobody reads it.
    until(async || ready(&server).await == StatusCode::OK).await;
    server.launch_to_completion(&json!({ "deltas": 3 })).await;
    server.stop();
    server.start_again();
    assert_eq!(server.get(&format!("/api/agents/{id}")).await["status"], "failed");
}

/// The agent's own files fill the disk, and no room is made. Only the reserve for the ends of turns is left.
#[tokio::test]
async fn the_turn_of_an_agent_that_fills_the_disk_with_its_own_files_ends_with_a_small_disk() {
    let mount = Mounted::tmpfs("size=24m");
    // The lines after that are long, so that they soon fill the last page of the spool on a slow machine too.
    let script = format!(
        "for i in $(seq 20); do echo line $i; sleep 0.01; done; cat /dev/zero > {}/own; \
         while :; do seq -s - 100; sleep 0.01; done",
        mount.0.path().display()
    );
    let mut server = server_on(
        &mount,
        &format!(
            "[agents.text]\nprogram = \"/bin/sh\"\nargs = [\"-c\", \"{script}\"]\nformat = \"text\"\npass_env = [\"PATH\"]\n"
        ),
    );
    until(async || has_reserve(&server)).await;
    let (status, launched) = server.post("/api/agents", &json!({ "type": "text", "prompt": "go" })).await;
    assert_eq!(status, StatusCode::CREATED, "{launched}");
    let id = launched["id"].as_str().unwrap().to_owned();
    let agent = server.wait_until(&id, |agent| agent["endedAt"].is_string()).await;
    assert_eq!(
        (&agent["status"], &agent["error"]["code"]),
        (&json!("failed"), &json!("storage_full")),
        "{agent}"
    );
    assert!(agent["error"]["message"].as_str().unwrap().contains("bytes of"), "{agent}");
    assert!(processes_of_agent(&id).is_empty());
    let events = server.events(&id).await;
    assert_dense(&events);
    let said = |said: &str| events.iter().any(|event| event["content"] == said);
    assert!(said("line 1") && said("\nline 2"), "{events:?}");
    // The disk is as full as before, and a start still has its reserve.
    server.kill_and_start_again();
    assert_eq!(server.get(&format!("/api/agents/{id}")).await["status"], "failed");
    assert_eq!(server.events(&id).await, events);
    std::fs::remove_file(mount.0.path().join("own")).unwrap();
    server.launch_to_completion(&json!({ "deltas": 3 })).await;
}

/// Fills the disk with a file, purges an agent, and returns the file.
async fn purge_on_a_full_disk(server: &TestServer, mount: &Mounted, id: &str) -> std::path::PathBuf {
    let ballast = mount.0.path().join("ballast");
    // Meanwhile the log is checkpointed, which may free space or use some.
    until(async || {
        fill(&ballast);
        ready(server).await == StatusCode::INSUFFICIENT_STORAGE
    })
    .await;
    let purge = format!("/api/agents/{id}?purge=true");
    let status = server.request(Method::DELETE, &purge).send().await.unwrap().status();
    assert_eq!(status, StatusCode::NO_CONTENT);
    ballast
}

#[tokio::test]
async fn a_purge_is_done_on_a_full_disk_with_a_small_disk() {
    let mount = Mounted::tmpfs("size=24m");
    let server = server_on(&mount, "");
    let id = server.launch_to_completion(&json!({ "deltas": 300 })).await;
    until(async || has_reserve(&server)).await;
    purge_on_a_full_disk(&server, &mount, &id).await;
    let status = server.request(Method::GET, &format!("/api/agents/{id}")).send().await.unwrap().status();
    assert!([StatusCode::GONE, StatusCode::NOT_FOUND].contains(&status), "{status}");
}

#[tokio::test]
async fn the_images_of_a_purged_agent_leave_a_full_disk_with_a_small_disk() {
    let mount = Mounted::tmpfs("size=24m");
    let mut server = server_on(&mount, &format!("{}rest_s = 0\n", crate::images::type_that_sees_once()));
    let mark = b"the mark of this picture";
    let image = [b"GIF89a", &mark.repeat(1 << 15)[..]].concat();
    let images = json!([{ "data": STANDARD.encode(&image) }]);
    let body = json!({ "type": "seeing", "prompt": "What is this?", "images": images });
    let (status, agent) = server.post("/api/agents", &body).await;
    assert_eq!(status, StatusCode::CREATED, "{agent}");
    let id = agent["id"].as_str().unwrap().to_owned();
    server.wait_for_status(&id, "completed").await;
    until(async || has_reserve(&server)).await;
    let ballast = purge_on_a_full_disk(&server, &mount, &id).await;
    let image = format!("/api/agents/{id}/turns/1/images/0");
    let status = server.request(Method::GET, &image).send().await.unwrap().status();
    assert!([StatusCode::GONE, StatusCode::NOT_FOUND].contains(&status), "{status}");
    // The pages of the image are overwritten when there is room for the log.
    std::fs::remove_file(&ballast).unwrap();
    server.launch_to_completion(&json!({ "deltas": 3 })).await;
    server.stop();
    assert!(!crate::images::holds(&server.data_dir(), mark), "no trace is left");
}

#[tokio::test]
async fn a_server_that_starts_on_a_full_disk_serves_what_there_is_with_a_small_disk() {
    let mount = Mounted::tmpfs("size=24m");
    let mut server = server_on(&mount, "");
    let ballast = mount.0.path().join("ballast");
    let done = server.launch_to_completion(&json!({ "deltas": 30 })).await;
    let before = server.events(&done).await;
    for kill in [false, true] {
        let gate = server.folder.path().join(format!("gate-{kill}"));
        let running = server.launch(&json!({ "deltas": 30, "gate": gate, "gate_after": 10 })).await;
        server.wait_until(&running, |agent| 10 < agent["head"].as_u64().unwrap()).await;
        until(async || has_reserve(&server)).await;
        if kill {
            server.kill_9();
        } else {
            server.stop();
            // Another program that has read the database removes this file when it closes.
            std::fs::remove_file(server.data_dir().join("tokenrail.db-shm")).unwrap();
        }
        fill(&ballast);
        server.start_again();
        // A start uses some of the reserve. Fill what is left of it.
        let more = mount.0.path().join("more");
        fill(&more);
        assert_eq!(server.events(&done).await, before);
        assert_eq!(server.get(&format!("/api/agents/{running}")).await["status"], "running");
        let listed = server.get("/api/agents").await;
        assert!(listed.to_string().contains(&done), "{listed}");
        let (status, problem) = server.post("/api/agents", &json!({ "type": "fake", "prompt": "{}" })).await;
        assert_eq!((status.as_u16(), &problem["code"]), (507, &json!("storage_full")));
        assert_eq!(ready(&server).await, StatusCode::INSUFFICIENT_STORAGE);

        std::fs::remove_file(&ballast).unwrap();
        std::fs::remove_file(&more).unwrap();
        std::fs::write(&gate, "").unwrap();
        server.wait_for_status(&running, "completed").await;
        assert_eq!(text_of(&server.events(&running).await), numbers(30));
        assert_eq!(ready(&server).await, StatusCode::OK);
    }
}

#[tokio::test]
async fn without_room_for_new_files_nothing_is_launched_and_a_turn_says_why_with_a_small_disk() {
    let mount = Mounted::tmpfs("size=24m,nr_inodes=200");
    let server = server_on(&mount, "");
    let id = server.launch_to_completion(&json!({ "deltas": 3 })).await;
    // The server removes the files of a run after its end, which would free space.
    let runs = server.data_dir().join("runs");
    until(async || std::fs::read_dir(&runs).unwrap().next().is_none()).await;
    // A file that is removed and still open keeps its place until it is closed.
    until(async || files_there(mount.0.path()) == files_used(mount.0.path())).await;
    let many = mount.0.path().join("many");
    std::fs::create_dir(&many).unwrap();
    assert!((0..200).any(|number| std::fs::File::create(many.join(number.to_string())).is_err()));
    assert_eq!(ready(&server).await, StatusCode::INSUFFICIENT_STORAGE);
    let (status, problem) = server.post("/api/agents", &json!({ "type": "fake", "prompt": "{}" })).await;
    assert_eq!((status.as_u16(), &problem["code"]), (507, &json!("storage_full")), "{problem}");
    let messages = format!("/api/agents/{id}/messages");
    let (status, _) = server.post(&messages, &json!({ "content": "{}" })).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    let agent = server.wait_until(&id, |agent| agent["status"] == "failed").await;
    assert_full(&agent["error"]);

    std::fs::remove_dir_all(&many).unwrap();
    assert_eq!(ready(&server).await, StatusCode::OK);
    server.post(&messages, &json!({ "content": "{}" })).await;
    server.wait_for_status(&id, "completed").await;
}

/// The error names the disk, and says that a retry may succeed.
fn assert_full(error: &Value) {
    assert_eq!((&error["class"], &error["code"]), (&json!("process"), &json!("storage_full")), "{error}");
    assert_eq!(error["recoverable"], true, "{error}");
    assert!(error["message"].as_str().unwrap().contains("No space left on device"), "{error}");
}

/// A server whose data folder is on this disk. Declare it after the disk, because it must end before the disk goes.
fn server_on(mount: &Mounted, agents: &str) -> TestServer {
    let config = format!("{}{agents}[limits]\nfull_disk_wait_s = 1\n", fake_config());
    let mut server = TestServer::start_with(&config);
    server.stop();
    server.move_data_to(mount.0.path());
    server.start_again();
    server
}

fn has_reserve(server: &TestServer) -> bool {
    server.data_dir().join("reserve").metadata().is_ok_and(|file| 0 < file.len())
}

pub(crate) async fn ready(server: &TestServer) -> StatusCode {
    server.request(Method::GET, "/readyz").send().await.unwrap().status()
}

pub(crate) async fn write_retries(server: &TestServer) -> u64 {
    let metrics = server.request(Method::GET, "/metrics").send().await.unwrap().text().await.unwrap();
    let line = metrics.lines().find(|line| line.starts_with("tokenrail_write_retries_total ")).unwrap();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// How many files and folders are in this one, with itself.
fn files_there(folder: &std::path::Path) -> u64 {
    let there = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    1 + there.map(|file| if file.path().is_dir() { files_there(&file.path()) } else { 1 }).sum::<u64>()
}

/// How many the file system has, also without a name.
fn files_used(folder: &std::path::Path) -> u64 {
    let disk = rustix::fs::statvfs(folder).unwrap();
    disk.f_files - disk.f_ffree
}

pub(crate) async fn until(holds: impl AsyncFn() -> bool) {
    let started = tokio::time::Instant::now();
    while !holds().await {
        assert!(started.elapsed() < PATIENCE, "it never came to that");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

/// Writes until the disk is full.
pub(crate) fn fill(path: &std::path::Path) {
    use std::io::Write as _;
    let mut file = std::fs::File::create(path).unwrap();
    for size in [1 << 16, 1 << 12, 1] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
}

/// A small file system.
pub(crate) struct Mounted(pub(crate) tempfile::TempDir);

impl Mounted {
    pub(crate) fn tmpfs(options: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mount = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "tokenrail-test"])
            .arg(folder.path())
            .status()
            .unwrap();
        assert!(mount.success(), "root can mount a tmpfs");
        Self(folder)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}
