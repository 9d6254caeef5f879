//! A server that is not started as in the user stories: its log is kept, or another program starts it.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::harness::TestServer;

/// A separate server process with the folder, port and token of a [`TestServer`] whose process was stopped.
pub(crate) struct Started {
    pub(crate) server: TestServer,
    process: Child,
    log: PathBuf,
}

impl Started {
    /// Starts it. `under` is a program with arguments that starts the server, or empty.
    pub(crate) fn start(config: &str, under: &[&str], args: &[&str]) -> Self {
        let mut server = TestServer::start_with(config);
        server.kill_9();
        Self::start_on(server, under, args, &[])
    }

    /// The same with a stopped server, and with additional environment variables.
    pub(crate) fn start_on(server: TestServer, under: &[&str], args: &[&str], env: &[(&str, &str)]) -> Self {
        let log = server.folder.path().join("log");
        let usual = server.command(&[&["serve"], args].concat());
        let mut command = match under {
            [] => Command::new(usual.get_program()),
            [program, rest @ ..] => {
                let mut command = Command::new(program);
                command.args(rest).arg(usual.get_program());
                command
            }
        };
        command.args(usual.get_args()).current_dir(server.folder.path()).envs(env.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(std::fs::File::create(&log).unwrap());
        let mut process = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let started = Self { server, process, log };
        assert!(line.starts_with("serving on "), "the server said {line:?} {}", started.log());
        started
    }

    /// The log so far.
    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap()).into_owned()
    }

    /// Asks the server to stop.
    pub(crate) fn ask_to_stop(&self) {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }

    /// Asks the server to stop, waits for its end, and returns the log.
    pub(crate) fn stop(mut self) -> String {
        self.end()
    }

    /// The same for tests that read the server's folder afterwards.
    pub(crate) fn end(&mut self) -> String {
        self.ask_to_stop();
        self.process.wait().unwrap();
        self.log()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // A test that fails must leave no server behind either. After `stop` there is none to kill.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
