//! Notifications that come twice, and notifications without sense.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::Database;

/// `psql` shows notifications after each command.
const ASK_EVERY: Duration = Duration::from_millis(5);

/// How many commands stand between two payloads without sense.
const NONSENSE_EVERY: u32 = 20;

/// Sends every notification of a channel again, and others without sense, until it is dropped.
#[derive(Debug)]
pub struct Echo {
    psql: Child,
    repeated: Receiver<String>,
}

impl Echo {
    /// The payloads that were sent again since the last call.
    pub fn repeated(&self) -> Vec<String> {
        self.repeated.try_iter().collect()
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        let _ = self.psql.kill();
        let _ = self.psql.wait();
    }
}

impl Database {
    /// Repeats what is sent on this channel. `nonsense` is sent now and then too.
    pub fn echo(&self, channel: &str, nonsense: &[&str]) -> Echo {
        let mut psql = self.session();
        psql.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut psql = psql.spawn().expect("psql starts");
        let (stdin, stdout) = (psql.stdin.take().expect("a pipe"), psql.stdout.take().expect("a pipe"));
        let (notes, hears) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if let Some(payload) = payload_of(&line) {
                    let _ = notes.send(payload.to_owned());
                }
            }
        });
        let nonsense = nonsense.iter().map(|text| (*text).to_owned()).collect();
        let (told, repeated) = mpsc::channel();
        let repeats = Repeats { channel: channel.to_owned(), nonsense, hears, told, stdin };
        thread::spawn(move || repeats.run());
        Echo { psql, repeated }
    }
}

/// The payload in a line of `psql`.
fn payload_of(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("with payload \"")?;
    let (payload, _) = rest.rsplit_once("\" received from server process")?;
    Some(payload)
}

struct Repeats {
    channel: String,
    nonsense: Vec<String>,
    hears: Receiver<String>,
    told: mpsc::Sender<String>,
    stdin: ChildStdin,
}

impl Repeats {
    /// Until `psql` ends.
    fn run(mut self) -> Option<()> {
        self.say(&format!("LISTEN {}", self.channel))?;
        // What it hears of itself.
        let mut own: Vec<String> = Vec::new();
        let nonsense = self.nonsense.clone();
        let mut nonsense = nonsense.iter().cycle();
        for number in 1_u32.. {
            match self.hears.recv_timeout(ASK_EVERY) {
                Ok(payload) => {
                    if let Some(at) = own.iter().position(|other| *other == payload) {
                        own.swap_remove(at);
                        continue;
                    }
                    self.notify(&payload)?;
                    own.push(payload.clone());
                    let _ = self.told.send(payload);
                }
                Err(RecvTimeoutError::Timeout) => {
                    if number.is_multiple_of(NONSENSE_EVERY)
                        && let Some(payload) = nonsense.next()
                    {
                        own.push(payload.clone());
                        self.notify(payload)?;
                    }
                    self.say("SET client_min_messages TO notice")?;
                }
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
        None
    }

    fn notify(&mut self, payload: &str) -> Option<()> {
        self.say(&format!("NOTIFY {}, '{payload}'", self.channel))
    }

    fn say(&mut self, sql: &str) -> Option<()> {
        writeln!(self.stdin, "{sql};").ok()
    }
}
