//! `PgBouncer` between the server and its database.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::json;
use tokenrail_test_postgres::{Database, database};

use crate::harness::{PATIENCE, TestServer, fake_config, free_port, numbers, text_of};
use crate::postgres::config;

/// Names the program.
const VARIABLE: &str = "TOKENRAIL_TEST_PGBOUNCER";

/// `PgBouncer` in front of a database. It ends when this is dropped.
struct Pooler {
    process: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Pooler {
    fn start(database: &Database, mode: &str) -> Self {
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let (url, path) = (database.url(), folder.path().display());
        let (_, address) = url.split_once('@').unwrap();
        let (host, name) = address.split_once('/').unwrap();
        let (host, server_port) = host.split_once(':').unwrap();
        let password = database.password();
        let mut settings = String::from("[databases]\n");
        writeln!(settings, "{name} = host={host} port={server_port} user=tokenrail password='{password}'")
            .unwrap();
        write!(
            settings,
            "[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n\
             auth_file = {path}/users\npool_mode = {mode}\ndefault_pool_size = 40\nlogfile = {path}/log\n"
        )
        .unwrap();
        fs::write(folder.path().join("users"), "").unwrap();
        fs::write(folder.path().join("pgbouncer.ini"), settings).unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let program = std::env::var_os(VARIABLE).unwrap_or_else(|| "/usr/sbin/pgbouncer".into());
        let mut command = Command::new(program);
        if rustix::process::geteuid().is_root() {
            // It refuses to run as root.
            command.args(["-u", "nobody"]);
        }
        command.arg("-q").arg(folder.path().join("pgbouncer.ini"));
        let process = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn();
        let process =
            process.unwrap_or_else(|error| panic!("install pgbouncer, or name it in {VARIABLE}: {error}"));
        let started = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(started.elapsed() < PATIENCE, "it does not listen");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        Self { process, port, _folder: folder }
    }

    /// The configuration of a server that uses it.
    fn config(&self, database: &Database) -> String {
        let address = format!("127.0.0.1:{}", self.port);
        let url = database.url();
        let direct = url.split(['@', '/']).nth(3).unwrap();
        config(database).replace(direct, &address)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.process.kill().and_then(|()| self.process.wait());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_runs_behind_pgbouncer_in_session_mode() {
    let database = database();
    let pooler = Pooler::start(&database, "session");
    let server = TestServer::start_with(&pooler.config(&database));
    let id = server.launch_to_completion(&json!({ "deltas": 200 })).await;
    assert_eq!(text_of(&server.events(&id).await), numbers(200));
}

#[test]
fn transaction_mode_is_refused_behind_pgbouncer() {
    let database = database();
    let mut server = TestServer::start_with(&fake_config());
    assert!(server.stop().success());
    let folder = tempfile::tempdir().unwrap();
    server.move_data_to(folder.path());
    for mode in ["transaction", "statement"] {
        let pooler = Pooler::start(&database, mode);
        server.config = pooler.config(&database);
        for command in [&["serve", "--log", "warn"][..], &["doctor"]] {
            let output = server.command(command).output().unwrap();
            let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert!(
                said.contains(
                    "set its pool mode to session, or set storage.url to the PostgreSQL server itself"
                ),
                "{said}"
            );
        }
    }
    assert_eq!(
        database.sql("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"),
        "0",
        "nothing was touched"
    );
}
