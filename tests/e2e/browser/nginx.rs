//! The real nginx in front of servers. `cargo xtask test` sets `TOKENRAIL_TEST_NGINX`, the path of the program.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::harness::PATIENCE;

/// What `docs/how-to/deploy.md` recommends for each location.
pub(super) const PASS_ON: &str = "proxy_http_version 1.1;
    proxy_set_header Host $http_host;
    proxy_set_header Upgrade $http_upgrade;
    proxy_set_header Connection \"upgrade\";
    proxy_buffering off;
    proxy_read_timeout 1h;
    client_max_body_size 0;";

/// An nginx. It ends when it is dropped.
pub(super) struct Nginx {
    process: Child,
    _folder: TempDir,
}

impl Nginx {
    /// Starts it with this part of its configuration, and waits until a server is ready behind this address.
    pub(super) async fn start(http: &str, public: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().display();
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {at}/{kind};"))
            .join("\n");
        let config = format!(
            "daemon off; master_process off; pid {at}/pid; error_log stderr;
             events {{}}
             http {{ access_log off; {temporary} {http} }}"
        );
        let file = folder.path().join("nginx.conf");
        std::fs::write(&file, config).unwrap();
        let program = std::env::var_os("TOKENRAIL_TEST_NGINX").map(PathBuf::from);
        let process = Command::new(program.expect("cargo xtask test sets TOKENRAIL_TEST_NGINX"))
            .arg("-p")
            .arg(folder.path())
            .arg("-c")
            .arg(&file)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let nginx = Self { process, _folder: folder };
        let (http, started) = (reqwest::Client::builder().no_proxy().build().unwrap(), Instant::now());
        loop {
            let ready = http.get(format!("{public}/readyz")).send().await;
            if ready.as_ref().is_ok_and(|ready| ready.status() == 200) {
                return nginx;
            }
            assert!(started.elapsed() < PATIENCE, "nginx does not serve {public}: {ready:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
