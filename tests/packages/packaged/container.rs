//! The container image, run by buildah without a daemon.

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::{DEMO, assert_demo, package};
use crate::harness::PATIENCE;

/// A container of the image, with a store of its own.
struct Container {
    store: TempDir,
    name: String,
}

impl Container {
    fn new() -> Self {
        let mut container = Self { store: tempfile::tempdir().unwrap(), name: String::new() };
        let archive = package("tokenrail-", "-container.tar");
        let from = format!("docker-archive:{}", archive.display());
        container.done(&["from", "--quiet", &from]).trim().clone_into(&mut container.name);
        container
    }

    fn buildah(&self, arguments: &[&str]) -> Command {
        let mut buildah = Command::new("buildah");
        buildah.arg("--storage-driver=vfs").arg("--root").arg(self.store.path().join("root"));
        buildah.arg("--runroot").arg(self.store.path().join("run")).args(arguments);
        buildah
    }

    fn done(&self, arguments: &[&str]) -> String {
        let output = self.buildah(arguments).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "buildah {arguments:?}: {printed}{complaint}");
        printed
    }

    /// A program in the container, which has the network of this machine.
    fn program<'a>(&'a self, words: &[&'a str]) -> Command {
        self.buildah(&[&["run", "--isolation", "chroot", &self.name, "--"], words].concat())
    }

    fn settings(&self) -> Value {
        serde_json::from_str(&self.done(&["inspect", "--type", "container", &self.name])).unwrap()
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let _ = self.buildah(&["rm", "--all"]).output();
    }
}

/// Ends the server in the container when the test ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.0.wait();
    }
}

#[test]
fn the_demo_runs_as_a_user_who_is_not_root() {
    let container = Container::new();
    let demo: Vec<_> = ["tokenrail"].into_iter().chain(DEMO).collect();
    let output = container.program(&demo).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !complaint.contains("root"), "{complaint}");
    assert_demo(&String::from_utf8_lossy(&output.stdout));
}

/// Agents write into /tmp.
#[test]
fn the_user_may_write_into_the_folder_for_temporary_files() {
    let container = Container::new();
    let demo = ["tokenrail", "--data-dir", "/tmp/data"].into_iter().chain(DEMO).collect::<Vec<_>>();
    let output = container.program(&demo).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_health_check_fails_without_a_server_and_succeeds_with_one() {
    let container = Container::new();
    let settings = container.settings();
    let settings = &settings["Docker"]["config"];
    assert_eq!(settings["User"], "10001:10001");
    assert!(settings["Volumes"].as_object().unwrap().contains_key("/data"), "{settings}");
    let check = settings["Healthcheck"]["Test"].as_array().expect("a health check").iter();
    let check: Vec<_> = check.filter_map(Value::as_str).collect();
    assert_eq!(check[0], "CMD");
    let is_healthy = || container.program(&check[1..]).output().unwrap().status.success();
    assert!(!is_healthy());
    let mut serve = container.program(&["tokenrail", "serve", "--listen", "127.0.0.1:0", "--log", "warn"]);
    let mut server = Running(serve.spawn().unwrap());
    let started = Instant::now();
    while !is_healthy() {
        assert_eq!(server.0.try_wait().unwrap(), None, "the server ended");
        assert!(started.elapsed() < PATIENCE, "the server is not healthy");
        std::thread::sleep(Duration::from_millis(50));
    }
}
