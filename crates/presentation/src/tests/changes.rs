//! The files that an agent has changed, and their patch.

use serde_json::json;
use tokenrail_domain::CommitId;
use tokenrail_ports::testing::PretendRepository;
use tokenrail_ports::{ChangedFile, Changes, Extent, FileStatus, Patch};

use super::harness::Harness;

const BASE: &str = "0123456789abcdef0123456789abcdef01234567";

fn file(path: &str, status: FileStatus, extent: Extent) -> ChangedFile {
    ChangedFile { path: path.into(), status, extent }
}

fn repository() -> PretendRepository {
    let files = vec![
        file("a b.txt", FileStatus::Modified, Extent::Lines { added: 2, removed: 1 }),
        file(
            "new.txt",
            FileStatus::Renamed { from: "old.txt".into() },
            Extent::Lines { added: 0, removed: 0 },
        ),
        file("picture.png", FileStatus::Untracked, Extent::Binary),
    ];
    PretendRepository {
        head: CommitId::new(BASE),
        changes: Changes { files, truncated: true },
        patch: Patch { text: b"diff --git a/x b/x\n".to_vec(), truncated: true },
    }
}

#[actix_web::test]
async fn the_changes_since_the_first_turn_are_listed() {
    let harness = Harness::in_repository(repository());
    let id = harness.launch_to_end("say hello").await;
    let answer = harness.get(&format!("/api/agents/{id}/changes")).await;
    let files = json!([
        {"path": "a b.txt", "status": "modified", "added": 2, "removed": 1, "binary": false},
        {"path": "new.txt", "oldPath": "old.txt", "status": "renamed", "added": 0, "removed": 0, "binary": false},
        {"path": "picture.png", "status": "untracked", "binary": true},
    ]);
    let expected = json!({"source": "git", "turn": 1, "base": BASE, "files": files, "truncated": true});
    assert_eq!((answer.status.as_u16(), answer.json()), (200, expected.clone()));
    assert_eq!(harness.get(&format!("/api/agents/{id}/changes?turn=1")).await.json(), expected);
    let later = harness.get(&format!("/api/agents/{id}/changes?turn=2")).await.json();
    assert_eq!((&later["source"], &later["reason"]), (&json!("none"), &json!("no_commit")));
    let detail = later["detail"].as_str().unwrap();
    assert!(detail.contains("the turn has not started, or "), "{detail}");
    assert_eq!(harness.get(&format!("/api/agents/{id}/changes?turn=x")).await.problem(), "validation_failed");
}

#[actix_web::test]
async fn a_patch_says_whether_it_is_complete() {
    let harness = Harness::in_repository(repository());
    let id = harness.launch_to_end("say hello").await;
    let answer = harness.get(&format!("/api/agents/{id}/changes/patch?path=x&oldPath=y")).await;
    assert_eq!((answer.status.as_u16(), &*answer.text), (200, "diff --git a/x b/x\n"));
    assert_eq!(answer.header("content-type"), "text/x-diff; charset=utf-8");
    assert_eq!(answer.header("tokenrail-truncated"), "true");
}

#[actix_web::test]
async fn a_path_outside_of_the_repository_is_an_error_of_the_client() {
    let harness = Harness::in_repository(repository());
    let id = harness.launch_to_end("say hello").await;
    let patch = async |query: &str| harness.get(&format!("/api/agents/{id}/changes/patch?{query}")).await;
    for wrong in ["", ".", "..", "../x", "a/../../x", "/etc/passwd", "./a", "a//b", "/", "a%00b"] {
        for query in [format!("path={wrong}"), format!("path=x&oldPath={wrong}")] {
            let answer = patch(&query).await;
            assert_eq!(
                (answer.status.as_u16(), answer.problem()),
                (422, "validation_failed".into()),
                "{query}"
            );
        }
    }
    for path in ["a", "a/b", "...", "..a/.b", "inner/", "a%EF%BF%BDb"] {
        assert_eq!(patch(&format!("path={path}")).await.status, 200, "{path}");
    }
}

#[actix_web::test]
async fn without_a_repository_the_answer_says_why() {
    let harness = Harness::new();
    let id = harness.launch_to_end("say hello").await;
    let answer = harness.get(&format!("/api/agents/{id}/changes")).await;
    assert_eq!(answer.status, 200);
    assert_eq!((&answer.json()["source"], &answer.json()["reason"]), (&json!("none"), &json!("no_commit")));
    let patch = harness.get(&format!("/api/agents/{id}/changes/patch")).await;
    assert_eq!((patch.status.as_u16(), patch.problem()), (409, "changes_unavailable".into()));
    let unknown = "/api/agents/01234567-89ab-cdef-0123-456789abcdef/changes";
    assert_eq!(harness.get(unknown).await.problem(), "not_found");
}
