//! S14: an agent works inside the configured folders, or is not started.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::harness::{TestServer, fake_agent, text_of};

/// The number of launches in a folder that is constantly replaced by a link. Each launch starts four processes, so this
/// number fits into the time of a test. `TOKENRAIL_TEST_LAUNCHES` overrides it.
const LAUNCHES: usize = 1000;

struct Folders {
    server: TestServer,
    place: tempfile::TempDir,
}

impl Folders {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        for folder in ["root/project", "root/swapped", "root-evil", "outside/swapped", "root/gone"] {
            std::fs::create_dir_all(place.path().join(folder)).unwrap();
        }
        std::fs::write(place.path().join("root/file"), "").unwrap();
        std::fs::remove_dir(place.path().join("root/gone")).unwrap();
        symlink(place.path().join("outside"), place.path().join("root/link")).unwrap();
        symlink("../outside", place.path().join("root/relative-link")).unwrap();
        symlink("loop", place.path().join("root/loop")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            place.path().join("root/fifo"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        let config = format!(
            "[agents.fake]\nprogram = \"{}\"\ncwd_roots = [\"{}\"]\n[limits]\nlaunches_per_minute = 10000\n",
            fake_agent().display(),
            place.path().join("root").display()
        );
        Self { server: TestServer::start_with(&config), place }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.place.path().canonicalize().unwrap().join(name)
    }

    async fn launch(&self, cwd: &str) -> (u16, Value) {
        let prompt = json!({ "mode": "env_dump" }).to_string();
        let body = json!({ "type": "fake", "prompt": prompt, "cwd": cwd });
        let (status, answer) = self.server.post("/api/agents", &body).await;
        (status.as_u16(), answer)
    }

    async fn check_refused(&self, cwd: &str) {
        let shown: String = cwd.chars().take(80).collect();
        let (status, problem) = self.launch(cwd).await;
        assert_eq!(status, 422, "{shown:?}: {problem}");
        let code = problem["code"].as_str().unwrap();
        assert!(matches!(code, "cwd_not_allowed" | "validation_failed"), "{shown:?}: {problem}");
        assert!(!problem.to_string().contains("outside/"), "nothing is told of what is there: {problem}");
    }
}

#[tokio::test]
async fn s14_folders_outside_the_roots_are_refused_however_they_are_written() {
    let folders = Folders::new();
    let root = folders.at("root");
    let root = root.to_str().unwrap();
    let evil = format!("{root}-evil");
    let refused = [
        "/",
        "/etc",
        "/proc/self/cwd",
        "/proc/self/root",
        "/dev/fd/0",
        "..",
        ".",
        "",
        "project",
        "~",
        "$HOME",
        "root",
        evil.as_str(),
    ];
    for cwd in refused {
        folders.check_refused(cwd).await;
    }
    let inside = [
        "/..",
        "/../outside",
        "/project/../..",
        "/project/../../outside",
        "/link",
        "/link/swapped",
        "/relative-link",
        "/loop",
        "/file",
        "/file/",
        "/fifo",
        "/gone",
        "/missing",
        "/project ",
        "/ project",
        "/project\n",
        "/project\0",
        "/project\0/../..",
        "/project/\u{202e}",
        "/%2e%2e",
        "/..\\outside",
    ];
    for rest in inside {
        folders.check_refused(&format!("{root}{rest}")).await;
    }
    folders.check_refused(&format!("{root}/{}", "a/".repeat(2500))).await;
    folders.check_refused(&format!("{root}/{}", "a".repeat(5000))).await;
    folders.check_refused(&format!("{root}/{}project", "project/../".repeat(500))).await;
    assert_eq!(folders.server.get("/api/agents").await, json!([]), "nothing was launched");

    for rest in ["", "/project", "/project/", "/./project", "//project", "/project/../project"] {
        let (status, agent) = folders.launch(&format!("{root}{rest}")).await;
        assert_eq!(status, 201, "{rest:?}: {agent}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s14_a_folder_that_becomes_a_link_during_the_launch_is_never_entered() {
    let folders = Folders::new();
    let (swapped, spare, link) =
        (folders.at("root/swapped"), folders.at("root/spare"), folders.at("root/swap-link"));
    symlink(folders.at("outside/swapped"), &link).unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let swapping = {
        let (done, swapped) = (Arc::clone(&done), swapped.clone());
        std::thread::spawn(move || {
            let mut swaps = 0_u64;
            while !done.load(Ordering::Relaxed) {
                swap(&swapped, &spare, &link);
                swaps += 1;
            }
            swaps
        })
    };
    let launches =
        std::env::var("TOKENRAIL_TEST_LAUNCHES").map_or(LAUNCHES, |launches| launches.parse().unwrap());
    let mut ids = Vec::new();
    let mut refused = 0;
    for _ in 0..launches {
        match folders.launch(swapped.to_str().unwrap()).await {
            (201, agent) => ids.push(agent["agentId"].as_str().unwrap().to_owned()),
            (status, problem) => {
                assert_eq!((status, &problem["code"]), (422, &json!("cwd_not_allowed")), "{problem}");
                refused += 1;
            }
        }
    }
    let mut entered = 0;
    for id in ids {
        let agent = folders.server.wait_until(&id, |agent| agent["endedAt"].is_string()).await;
        if agent["status"] == "completed" {
            let seen: Value = serde_json::from_str(&text_of(&folders.server.events(&id).await)).unwrap();
            let cwd = Path::new(seen["cwd"].as_str().unwrap());
            // The folder may already have its spare name when the agent reads it. In any case it is the folder inside
            // the root.
            assert!(cwd.starts_with(folders.at("root")), "it works in {}", cwd.display());
            entered += 1;
        } else {
            assert_eq!(
                (&agent["status"], &agent["error"]["class"]),
                (&json!("failed"), &json!("process")),
                "{agent}"
            );
        }
    }
    done.store(true, Ordering::Relaxed);
    let swaps = swapping.join().unwrap();
    println!(
        "{launches} launches, {swaps} swaps: {entered} entered the folder, {refused} met the link at once"
    );
    assert!(launches as u64 <= swaps, "only {swaps} swaps");
    assert!(0 < entered && 0 < refused, "{entered} entered the folder, {refused} met the link");
}

/// Replaces the folder with the link for a moment.
fn swap(folder: &Path, spare: &Path, link: &Path) {
    std::fs::rename(folder, spare).unwrap();
    std::fs::rename(link, folder).unwrap();
    std::thread::sleep(std::time::Duration::from_micros(300));
    std::fs::rename(folder, link).unwrap();
    std::fs::rename(spare, folder).unwrap();
    std::thread::sleep(std::time::Duration::from_micros(300));
}
