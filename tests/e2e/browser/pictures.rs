//! The screenshots of the docs: the demo, as a user sees it. `cargo xtask web screenshots` saves them.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::{Browser, Look, address, demo_config, ended};
use crate::harness::TestServer;

/// The folder for the screenshots. Without it, the test only takes and checks them.
const VARIABLE: &str = "TOKENRAIL_TEST_SCREENSHOTS";

/// Pictures must load quickly, and the repository keeps each version forever.
const BYTES_MAX: usize = 150_000;

/// A folder that exists on every machine. The pictures show no other path.
const FOLDER: &str = "/usr";

#[tokio::test]
async fn the_pictures_of_the_docs_can_be_taken() {
    let server = TestServer::start_with(&format!("{}cwd_roots = [\"{FOLDER}\"]\n", demo_config(1)));
    let kept = std::env::var_os(VARIABLE).map(PathBuf::from);
    let folder = kept.unwrap_or_else(|| server.folder.path().to_owned());
    let browser = Browser::start();
    let empty = browser.tab(Look::default()).await;
    empty.visit(&address(&server, "/")).await;
    empty.until_there("[data-testid=launch-demo]").await;
    take(&empty, &folder, "empty").await;
    let mut ids = Vec::new();
    for (name, prompt) in [
        ("Weekly report", "Write the weekly report into out/report.md."),
        ("Tidy the notes", "Tidy notes.txt."),
        ("Demo", "Run the command, read notes.txt, and write a short report of both."),
    ] {
        let launch = json!({ "type": "demo", "name": name, "prompt": prompt, "cwd": FOLDER });
        let (status, agent) = server.post("/api/agents", &launch).await;
        assert_eq!(status, 201, "{agent}");
        ids.push(agent["agentId"].as_str().unwrap().to_owned());
    }
    for id in &ids {
        server.wait_for_status(id, "completed").await;
    }
    let id = ids.last().unwrap();
    let looks = [
        ("light", Look::default()),
        ("dark", Look { dark: true, phone: false }),
        ("phone", Look { dark: false, phone: true }),
    ];
    for (name, look) in looks {
        let tab = browser.tab(look).await;
        tab.visit(&address(&server, &format!("/agents/{id}"))).await;
        tab.until(&ended(1)).await;
        let seen = tab.text("body").await;
        let own = server.folder.path().display().to_string();
        assert!(seen.contains(&FOLDER[1..]) && !seen.contains(&own), "no path of this machine: {seen}");
        // A phone shows only the answer, for lack of room. A desktop shows how the agent got there.
        if !look.phone {
            tab.evaluate("document.querySelector('#events').scrollTop = 0").await;
            tab.until_there("[data-index='0']").await;
            tab.until_there("[data-testid=agents] [data-testid=agent]").await;
        }
        take(&tab, &folder, name).await;
    }
}

async fn take(tab: &super::Tab, folder: &Path, name: &str) {
    let file = folder.join(format!("{name}.png"));
    tab.picture(file.clone()).await;
    let picture = std::fs::read(file).unwrap();
    assert!(picture.starts_with(b"\x89PNG"));
    assert!((5_000..BYTES_MAX).contains(&picture.len()), "{name}: {} bytes", picture.len());
}
