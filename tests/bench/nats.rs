//! NATS `JetStream` for comparison: a stream with file storage, and a push consumer for each follower, over the text
//! protocol of NATS. It starts no agents: the load generator publishes what they would print.

use std::io::BufRead as _;
use std::process::{Child, Stdio};

use bytes::{Buf as _, BytesMut};
use memchr::memmem;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::Failure;
use crate::agents::{Load, Outcome, run};
use crate::cores::Cores;
use crate::machine::now_us;
use crate::pacer::{claude_line, push_number};
use crate::peers::nats_command;
use crate::seen::{Seen, number};
use crate::server::{Durability, Setup};
use crate::websocket::Until;

const READ_BYTES: usize = 64 << 10;
const TEXT: &[u8] = br#""text":""#;
const CONNECT: &[u8] = b"CONNECT {\"verbose\":false,\"pedantic\":false}\r\n";
/// The subjects on which the server answers requests, and on which a follower gets its messages.
const ANSWERS: &str = "_INBOX.bench";
const DELIVERIES: &str = "_INBOX.follower";

pub(crate) async fn measure(load: &Load, cores: Option<&Cores>) -> Result<Outcome, Failure> {
    let server = Server::start(cores)?;
    let mut client = Client::connect(&server).await?;
    let stream =
        json!({ "name": "tokens", "subjects": ["agent.*"], "storage": "file", "retention": "limits" });
    client.ask("STREAM.CREATE.tokens", &stream).await?;
    let (tokens, late, mut reading) = (load.pace().tokens, load.late(), JoinSet::new());
    let (mut followers, mut publishers) = (Vec::new(), Vec::new());
    for agent in 0..load.agents {
        for follower in 0..load.followers {
            let mut client = Client::connect(&server).await?;
            let subject = format!("{DELIVERIES}.{agent}.{follower}");
            client.send(format!("SUB {subject} 2\r\n").as_bytes()).await?;
            let config = json!({
                "deliver_subject": subject, "deliver_policy": "all", "ack_policy": "none",
                "replay_policy": "instant", "filter_subject": format!("agent.{agent}"),
            });
            let consumer = json!({ "stream_name": "tokens", "config": config });
            client.ask("CONSUMER.CREATE.tokens", &consumer).await?;
            client.seen.delays_us.reserve_exact(tokens as usize);
            followers.push(client);
        }
        publishers.push(Client::connect(&server).await?.stream);
    }
    for (index, follower) in followers.into_iter().enumerate() {
        reading
            .spawn(async move { Ok((index, follower.read_until_late(Until::Deltas(tokens), late).await?)) });
    }
    let (outcome, _) = run(load, server.process.id(), publishers, publish, reading, |_, _| {}).await?;
    Ok(outcome)
}

/// The line that an agent would print, as a message.
fn publish(agent: usize, said_us: u64, out: &mut Vec<u8>) {
    let mut line = Vec::with_capacity(512);
    claude_line(agent, said_us, &mut line);
    out.extend_from_slice(b"PUB agent.");
    push_number(agent as u64, out);
    out.push(b' ');
    push_number(line.len() as u64, out);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(&line);
    out.extend_from_slice(b"\r\n");
}

/// A running server. It ends when it is dropped.
struct Server {
    process: Child,
    address: String,
    /// The folder is removed at the end.
    _folder: TempDir,
}

impl Server {
    fn start(cores: Option<&Cores>) -> Result<Self, Failure> {
        let setup = Setup { durability: Durability::Normal, more: "", in_memory: true, cores, program: None };
        let folder = setup.folder()?;
        let mut command = nats_command(cores)?;
        command
            .args(["--addr", "127.0.0.1", "--port", "-1", "--jetstream", "--store_dir"])
            .arg(folder.path());
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let mut server = Self { process, address: String::new(), _folder: folder };
        let stderr = server.process.stderr.take().ok_or("nats-server has no output")?;
        let mut lines = std::io::BufReader::new(stderr).lines();
        while let Some(line) = lines.next().transpose()? {
            if let Some((_, address)) = line.split_once("Listening for client connections on ") {
                address.trim().clone_into(&mut server.address);
            }
            if line.contains("Server is ready") {
                // Keep reading its output, or the server could not write.
                std::thread::spawn(move || lines.for_each(drop));
                return Ok(server);
            }
        }
        Err("nats-server has not begun to serve".into())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Either it has ended, or nothing more can be done.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

struct Client {
    stream: TcpStream,
    buffer: BytesMut,
    ping: bool,
    /// The newest answer to a request.
    answer: Option<Value>,
    seen: Seen,
}

impl Client {
    async fn connect(server: &Server) -> Result<Self, Failure> {
        let mut stream = TcpStream::connect(&server.address).await?;
        stream.set_nodelay(true)?;
        stream.write_all(CONNECT).await?;
        Ok(Self { stream, buffer: BytesMut::new(), ping: false, answer: None, seen: Seen::default() })
    }

    async fn send(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        Ok(self.stream.write_all(bytes).await?)
    }

    /// Sends a request to the `JetStream` API.
    async fn ask(&mut self, what: &str, body: &Value) -> Result<(), Failure> {
        let body = body.to_string();
        let request = format!("SUB {ANSWERS}.{what} 1\r\nUNSUB 1 1\r\n");
        self.send(request.as_bytes()).await?;
        let request = format!("PUB $JS.API.{what} {ANSWERS}.{what} {}\r\n{body}\r\n", body.len());
        self.send(request.as_bytes()).await?;
        while self.answer.is_none() {
            self.read().await?;
        }
        match self.answer.take() {
            Some(answer) if answer.get("error").is_some() => Err(format!("{what}: {answer}").into()),
            _ => Ok(()),
        }
    }

    async fn read_until_late(mut self, until: Until, late: Instant) -> Result<Seen, Failure> {
        while !until.is_met(&self.seen) {
            match timeout_at(late, self.read()).await {
                Ok(read) => read?,
                Err(_) => break,
            }
        }
        Ok(self.seen)
    }

    async fn read(&mut self) -> Result<(), Failure> {
        self.buffer.reserve(READ_BYTES);
        if self.stream.read_buf(&mut self.buffer).await? == 0 {
            return Err("nats-server has cut the connection".into());
        }
        self.seen.newest_us = now_us();
        while self.operation()? {}
        if std::mem::take(&mut self.ping) {
            self.send(b"PONG\r\n").await?;
        }
        Ok(())
    }

    /// Handles the next operation, if it is complete.
    fn operation(&mut self) -> Result<bool, Failure> {
        let Some(end) = memmem::find(&self.buffer, b"\r\n") else { return Ok(false) };
        let line = std::str::from_utf8(&self.buffer[..end])?;
        let Some(message) = line.strip_prefix("MSG ") else {
            self.ping |= line == "PING";
            if line.starts_with("-ERR") {
                return Err(line.into());
            }
            self.buffer.advance(end + 2);
            return Ok(true);
        };
        let head = Head::parse(message).ok_or_else(|| format!("no message of NATS: {message}"))?;
        let payload = end + 2..end + 2 + head.length;
        let whole = payload.end + 2;
        if self.buffer.len() < whole {
            return Ok(false);
        }
        let payload = &self.buffer[payload];
        match head.sequence {
            Some(sequence) => {
                self.seen.event(sequence)?;
                self.seen.deltas += 1;
                let text = memmem::find(payload, TEXT).ok_or("a message without a text")? + TEXT.len();
                self.seen.delay(number(&payload[text..]));
            }
            None => self.answer = Some(serde_json::from_slice(payload)?),
        }
        self.buffer.advance(whole);
        Ok(true)
    }
}

/// The line before a message: its subject, the subscription, where to acknowledge it, and its length.
#[derive(Debug, PartialEq, Eq)]
struct Head {
    /// The number of the message for this consumer. An answer to a request has none.
    sequence: Option<u64>,
    length: usize,
}

impl Head {
    fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split(' ').collect();
        let length = words.last()?.parse().ok()?;
        // `$JS.ACK.<stream>.<consumer>.<deliveries>.<number in the stream>.<number of this consumer>.<time>.<pending>`
        let sequence = words.iter().find(|word| word.starts_with("$JS.ACK."));
        let sequence = sequence.and_then(|reply| reply.split('.').nth(6)?.parse().ok());
        Some(Self { sequence, length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_delivery_is_that_of_its_consumer() {
        let line = "agent.7 2 $JS.ACK.tokens.x8Jk2.1.4711.12.1795299001017000000.3 290";
        assert_eq!(Head::parse(line), Some(Head { sequence: Some(12), length: 290 }));
        assert_eq!(Head::parse("_INBOX.bench.x 1 5"), Some(Head { sequence: None, length: 5 }));
        assert_eq!(Head::parse("agent.7 2 many"), None);
    }

    #[test]
    fn a_publication_says_how_long_it_is() {
        let mut out = Vec::new();
        publish(3, 99, &mut out);
        let text = String::from_utf8(out).unwrap();
        let (head, payload) = text.split_once("\r\n").unwrap();
        assert_eq!(head, format!("PUB agent.3 {}", payload.len() - 2));
        assert!(payload.contains("\"text\":\"99 \"") && payload.ends_with("\r\n"));
    }
}
