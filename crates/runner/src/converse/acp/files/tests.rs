use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json, value::to_raw_value};
use tempfile::TempDir;

use super::*;

const BYTES_MAX: usize = 100;

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("work")).unwrap();
    fs::write(folder.path().join("work/notes.txt"), "alpha\nbeta\ngamma\n").unwrap();
    fs::write(folder.path().join("secret"), "a secret").unwrap();
    folder
}

/// The response to the agent. `{work}` in the path stands for the agent's working folder.
fn ask(folder: &TempDir, request: &Value) -> Value {
    let work = folder.path().canonicalize().unwrap().join("work");
    let files = Files::new(work.to_str().unwrap(), Some(BYTES_MAX));
    let path = request["path"].as_str().unwrap().replace("{work}", work.to_str().unwrap());
    let mut params = request.clone();
    params["path"] = path.into();
    let (params, id, mut out) = (params.to_string(), to_raw_value(&7).unwrap(), Outbox::default());
    let params: FileRequest<'_> = serde_json::from_str(&params).unwrap();
    match request.get("content") {
        Some(_) => files.write(&id, &params, &mut out),
        None => files.read(&id, &params, &mut out),
    }
    let answer: Value = serde_json::from_slice(&out.to_program).unwrap();
    assert_eq!(answer["id"], 7);
    answer
}

#[track_caller]
fn refused(folder: &TempDir, request: &Value, code: i32) {
    let answer = ask(folder, request);
    assert_eq!(answer["error"]["code"], code, "{answer}");
}

#[test]
fn a_file_is_read_whole_or_by_lines() {
    let folder = folder();
    let read = |more: &Value| {
        let mut request = json!({ "path": "{work}/notes.txt" });
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        ask(&folder, &request)["result"]["content"].as_str().unwrap().to_owned()
    };
    assert_eq!(read(&json!({})), "alpha\nbeta\ngamma\n");
    assert_eq!(read(&json!({ "line": 2 })), "beta\ngamma\n");
    assert_eq!(read(&json!({ "line": 2, "limit": 1 })), "beta\n");
    assert_eq!(read(&json!({ "line": 0, "limit": 1 })), "alpha\n");
    assert_eq!(read(&json!({ "line": 9, "limit": null })), "");
}

#[test]
fn a_file_is_written_with_the_folders_on_the_way_to_it() {
    let folder = folder();
    for content in ["a longer text", "short"] {
        let answer = ask(&folder, &json!({ "path": "{work}/a/b/c.txt", "content": content }));
        assert_eq!(answer["result"], json!({}), "{answer}");
        assert_eq!(fs::read_to_string(folder.path().join("work/a/b/c.txt")).unwrap(), content);
    }
    symlink("notes.txt", folder.path().join("work/link")).unwrap();
    ask(&folder, &json!({ "path": "{work}/link", "content": "through a link that stays inside" }));
    let written = fs::read_to_string(folder.path().join("work/notes.txt")).unwrap();
    assert_eq!(written, "through a link that stays inside");
}

#[test]
fn nothing_outside_of_the_folder_is_read_or_written() {
    let folder = folder();
    let outside = folder.path().canonicalize().unwrap();
    symlink(&outside, folder.path().join("work/out")).unwrap();
    symlink("../secret", folder.path().join("work/file")).unwrap();
    symlink("/etc/passwd", folder.path().join("work/absolute")).unwrap();
    symlink("../new", folder.path().join("work/dangling")).unwrap();
    let ways = [
        "/etc/passwd",
        "secret",
        "",
        "{work}/../secret",
        "{work}/out/secret",
        "{work}/file",
        "{work}/absolute",
        "{work}2/notes.txt",
        "/proc/self/environ",
    ];
    for path in ways {
        refused(&folder, &json!({ "path": path }), INVALID_PARAMS);
    }
    for path in ways.into_iter().chain(["{work}/dangling", "{work}/out/new", "{work}/out/new/file"]) {
        refused(&folder, &json!({ "path": path, "content": "mine" }), INVALID_PARAMS);
    }
    assert_eq!(fs::read_to_string(folder.path().join("secret")).unwrap(), "a secret");
    assert!(!folder.path().join("new").exists());
}

#[test]
fn what_is_no_ordinary_file_is_refused_without_waiting() {
    let folder = folder();
    rustix::fs::mkfifoat(CWD, folder.path().join("work/pipe"), Mode::RUSR | Mode::WUSR).unwrap();
    for path in ["{work}", "{work}/pipe"] {
        refused(&folder, &json!({ "path": path }), INVALID_PARAMS);
        refused(&folder, &json!({ "path": path, "content": "x" }), INVALID_PARAMS);
    }
    refused(&folder, &json!({ "path": "{work}/nowhere" }), NOT_FOUND);
    refused(&folder, &json!({ "path": "{work}/notes.txt/x" }), INTERNAL);
}

#[test]
fn files_that_are_too_large_or_no_text_are_refused() {
    let folder = folder();
    let work = folder.path().join("work");
    fs::write(work.join("large"), "x".repeat(BYTES_MAX + 1)).unwrap();
    fs::write(work.join("most"), "x".repeat(BYTES_MAX)).unwrap();
    fs::write(work.join("bytes"), b"\xff\xfe").unwrap();
    refused(&folder, &json!({ "path": "{work}/large" }), INVALID_PARAMS);
    refused(&folder, &json!({ "path": "{work}/bytes" }), INTERNAL);
    assert!(ask(&folder, &json!({ "path": "{work}/most" }))["result"].is_object());
    let content = "x".repeat(BYTES_MAX + 1);
    refused(&folder, &json!({ "path": "{work}/new", "content": content }), INVALID_PARAMS);
    refused(&folder, &json!({ "path": "{work}/new", "content": 7 }), INVALID_PARAMS);
    assert!(!work.join("new").exists());
}

#[test]
fn without_the_offer_there_are_no_files() {
    let (id, mut out) = (to_raw_value("a").unwrap(), Outbox::default());
    Files::new("/", None).read(&id, &FileRequest::default(), &mut out);
    let answer: Value = serde_json::from_slice(&out.to_program).unwrap();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("a"), &json!(METHOD_NOT_FOUND)));
}

#[test]
fn the_folder_stays_the_same_whatever_is_put_at_its_path() {
    let folder = folder();
    let work = folder.path().canonicalize().unwrap().join("work");
    let files = Files::new(work.to_str().unwrap(), Some(BYTES_MAX));
    fs::rename(&work, folder.path().join("elsewhere")).unwrap();
    symlink(folder.path(), &work).unwrap();
    let read = |name: &str| files.read_text(work.join(name).to_str().unwrap(), BYTES_MAX);
    assert!(matches!(read("secret"), Err(FileError::NotFound(_))), "{:?}", read("secret"));
    assert_eq!(read("notes.txt").unwrap(), "alpha\nbeta\ngamma\n");
}
