//! Which server a command uses: the named one, otherwise the one of the data folder, and no other.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use crate::harness::{TestServer, fake_config, program};

/// A command with its own folder and configuration. Nothing else names a server.
fn run(folder: &Path, config: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(program());
    command.args(args).arg("--data-dir").arg(folder).arg("--config").arg(config);
    command.current_dir(config.parent().unwrap());
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// A configuration whose servers listen on that address.
fn config(folder: &Path, listen: &str) -> std::path::PathBuf {
    let file = folder.join("elsewhere.toml");
    std::fs::write(&file, format!("[server]\nlisten = \"{listen}\"\n{}", fake_config())).unwrap();
    file
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_of_the_folder_is_found_and_an_address_that_is_named_goes_before_it() {
    let server = TestServer::start();
    let config = config(server.folder.path(), "127.0.0.1:9");
    let id = server.launch(&serde_json::json!({})).await;
    let (code, shown, said) = run(&server.data_dir(), &config, &["ls"]);
    assert!(code == 0 && shown.contains(&id), "{said}");
    let (code, shown, said) = run(&server.data_dir(), &config, &["ls", "--listen", "127.0.0.1:9"]);
    assert_eq!((code, &shown[..]), (3, ""), "{said}");
    assert!(said.contains("127.0.0.1:9"), "{said}");
    let (_, shown, _) = run(&server.data_dir(), &config, &["doctor"]);
    assert!(shown.contains(&format!("ok      server: running at http://{}", server.authority())), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_of_another_folder_is_neither_used_nor_taken_for_ones_own() {
    let other = TestServer::start();
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), &other.authority());
    let data = folder.path().join("data");
    for _ in 0..2 {
        // In the second round there is a token, which must not be sent to the other server.
        let (code, shown, said) = run(&data, &config, &["run", "--type", "fake", r#"{"deltas":3}"#]);
        assert_eq!(code, 0, "{said}");
        assert!(shown.contains("0 1 2 ") && said.contains("starting a private one for this run"), "{said}");
    }
    assert_eq!(other.get("/api/agents").await, serde_json::json!([]), "nothing was launched there");
    let (code, _, said) = run(&data, &config, &["ls"]);
    assert!(
        code == 3 && said.contains(&format!("no server is using the data folder {}", data.display())),
        "{said}"
    );
    let (_, shown, _) = run(&data, &config, &["doctor"]);
    assert!(shown.contains("server: not running"), "{shown}");
    let (code, shown, _) = run(&data, &config, &["doctor", "--listen", &other.authority()]);
    assert!(
        code == 1 && shown.contains("error   server: ") && shown.contains("rejected the token"),
        "{shown}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_has_got_the_address_of_a_server_that_died_is_not_spoken_to() {
    let mut server = TestServer::start();
    server.kill_9();
    let heir = TcpListener::bind(server.authority()).unwrap();
    heir.set_nonblocking(true).unwrap();
    let config = config(server.folder.path(), &server.authority());
    assert!(server.data_dir().join("address").exists(), "it had no time to remove it");
    for args in [&["ls"][..], &["doctor"], &["run", "--type", "fake", "{}"]] {
        run(&server.data_dir(), &config, args);
        assert_eq!(heir.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "{args:?}");
    }
}
