//! A server that is started in another way than the user stories do: with its log kept, or by another program.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::harness::TestServer;

/// A server process of its own, on the folder, port and token of a [`TestServer`] whose process has been stopped.
pub(crate) struct Started {
    pub(crate) server: TestServer,
    process: Child,
    log: PathBuf,
}

impl Started {
    /// Starts it: `under` is a program with arguments that starts the server, or nothing.
    pub(crate) fn start(config: &str, under: &[&str], args: &[&str]) -> Self {
        let mut server = TestServer::start_with(config);
        server.kill_9();
        Self::start_on(server, under, args, &[])
    }

    /// The same on a server that does not run, with more variables in its environment.
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

    /// What it has logged so far.
    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap()).into_owned()
    }

    /// Asks the server to end.
    pub(crate) fn ask_to_stop(&self) {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }

    /// Asks the server to end, waits for that, and gives what it has logged.
    pub(crate) fn stop(mut self) -> String {
        self.end()
    }

    /// The same, for those who look at its folder afterwards.
    pub(crate) fn end(&mut self) -> String {
        self.ask_to_stop();
        self.process.wait().unwrap();
        self.log()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // A test that failed leaves nothing behind either; after `stop` there is nobody to kill.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
