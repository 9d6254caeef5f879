//! Whatever a Socket.IO client does while it changes from polling to a WebSocket, each request is answered, each
//! WebSocket is closed with a documented code, and the server has no error.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::Value;

use super::socket_io;
use super::unix_server::server;
use super::world::HOST;
use super::ws_client_frame::{CLOSE_CODES, frame};

pub(crate) const WORDS: &[&str] = &[
    "\nW",
    "\nT2probe",
    "\nT5",
    "\nT3",
    "\nT3probe",
    "\nT40",
    "\nT41",
    "\nT6",
    "\nT1",
    "\nP40",
    "\nP2probe",
    "\nP5",
    "\nP1",
    "\nP3",
    "\nG",
    "\nX",
    "\nC",
    "\nB",
    "\nF",
    "\nR",
    "42[\"subscribe\",{\"agentId\":\"019ab0f5-0000-7000-8000-000000000000\"}]",
    "\u{1e}3",
];

const PATIENCE: Duration = Duration::from_secs(20);
/// What the client polls at the end before it gives up.
const POLLS_MAX: usize = 100;
const SOCKETS_MAX: usize = 3;
/// As many bodies as wait until the session reads them. A further one waits until the client polls.
const BODIES_MAX: usize = 3;
const POLLING: &str = "/socket.io/?EIO=4&transport=polling";
/// The code that Socket.IO has in addition to those of `/ws`.
const INVALID_PACKET: u16 = 1008;

/// Each line is a step; its first letter says which. `W` opens a WebSocket for the session, `T` sends it a text, `B`
/// binary data, `F` a text in two fragments, `R` raw bytes, `C` a close, and `X` breaks it off. `P` posts a body, `G`
/// polls.
pub(crate) fn run(data: &[u8]) {
    let mut client = Client::open();
    let steps: Vec<&[u8]> = data.split(|byte| *byte == b'\n').filter(|step| !step.is_empty()).collect();
    for (at, step) in steps.iter().enumerate() {
        client.step(step);
        // Nothing else has happened, so the session must be there.
        if at == 1 && steps[..2] == [b"W".as_slice(), b"T2probe"] {
            let socket = client.sockets.last_mut().expect("it was opened");
            assert_eq!(socket.next_frame(), Some((0x81, b"3probe".to_vec())));
        }
    }
    client.end();
}

struct Client {
    uri: String,
    sockets: Vec<Socket>,
    /// Polls whose responses were not read yet.
    polls: Vec<UnixStream>,
    posted: usize,
}

struct Socket {
    stream: UnixStream,
    /// What was read and is no whole frame yet.
    read: Vec<u8>,
}

impl Client {
    fn open() -> Self {
        let (status, open) = answer(send("GET", POLLING, b""));
        assert_eq!(status, 200, "{open}");
        let open: Value = serde_json::from_str(open.strip_prefix('0').expect("a handshake")).expect("JSON");
        let sid = open["sid"].as_str().expect("an id");
        let uri = format!("{POLLING}&sid={sid}");
        Self { uri, sockets: Vec::new(), polls: Vec::new(), posted: 0 }
    }

    fn step(&mut self, step: &[u8]) {
        let rest = &step[1..];
        match step[0] {
            b'W' if self.sockets.len() < SOCKETS_MAX => self.sockets.extend(Socket::open(&self.uri)),
            b'T' => self.say(|out| frame(out, 0x81, rest)),
            b'B' => self.say(|out| frame(out, 0x82, rest)),
            b'F' => self.say(|out| {
                let (first, second) = rest.split_at(rest.len() / 2);
                frame(out, 0x01, first);
                frame(out, 0x80, second);
            }),
            b'R' => self.say(|out| out.extend_from_slice(rest)),
            b'C' => self.say(|out| frame(out, 0x88, &1000_u16.to_be_bytes())),
            b'X' => {
                if let Some(socket) = self.sockets.last() {
                    let _ = socket.stream.shutdown(Shutdown::Both);
                }
            }
            b'P' if self.posted < BODIES_MAX => {
                self.posted += 1;
                self.post(rest);
            }
            b'G' => self.polls.push(send("GET", &self.uri, b"")),
            _ => {}
        }
    }

    fn say(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let Some(socket) = self.sockets.last_mut() else { return };
        let mut out = Vec::new();
        write(&mut out);
        // The server may have closed it.
        let _ = socket.stream.write_all(&out);
    }

    fn post(&self, body: &[u8]) {
        let (status, said) = answer(send("POST", &self.uri, body));
        match status {
            200 => assert_eq!(said, "ok"),
            400 | 413 => check_error(&said),
            _ => panic!("{status}: {said}"),
        }
    }

    /// Ends the session, and reads everything to its end.
    fn end(mut self) {
        self.post(b"1");
        for socket in &self.sockets {
            let _ = socket.stream.shutdown(Shutdown::Write);
        }
        let is_over = (0..POLLS_MAX).any(|_| is_last(answer(send("GET", &self.uri, b""))));
        assert!(is_over, "the session does not end");
        for poll in self.polls.drain(..) {
            is_last(answer(poll));
        }
        self.sockets.into_iter().for_each(Socket::check);
    }
}

impl Socket {
    /// `None` if the session has ended.
    fn open(uri: &str) -> Option<Self> {
        let uri = uri.replace("=polling", "=websocket");
        let mut stream = connect();
        let hello = format!(
            "GET {uri} HTTP/1.1\r\nHost: {HOST}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        stream.write_all(hello.as_bytes()).expect("it takes the handshake");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("it answers");
            head.push(byte[0]);
        }
        if head.starts_with(b"HTTP/1.1 101") {
            return Some(Self { stream, read: Vec::new() });
        }
        assert!(head.starts_with(b"HTTP/1.1 400"), "{}", String::from_utf8_lossy(&head));
        None
    }

    /// The next frame: its first byte and its payload. `None` at the end.
    fn next_frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut chunk = [0; 4096];
        loop {
            if let Some((first, payload, length)) = whole_frame(&self.read) {
                self.read.drain(..length);
                return Some((first, payload));
            }
            match self.stream.read(&mut chunk) {
                Ok(0) => break,
                Ok(length) => self.read.extend_from_slice(&chunk[..length]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break,
                Err(error) => panic!("a WebSocket stays open: {error}"),
            }
        }
        None
    }

    /// Reads to the end. If the client broke it off, the last frame may be cut.
    fn check(mut self) {
        let mut is_closed = false;
        while let Some((first, payload)) = self.next_frame() {
            assert!(!is_closed, "nothing comes after the close");
            match first {
                0x81 => {
                    let packet = String::from_utf8(payload).expect("UTF-8");
                    if packet != "3probe" {
                        socket_io::check(&packet);
                    }
                }
                0x88 => {
                    let code = u16::from_be_bytes([payload[0], payload[1]]);
                    let is_known = CLOSE_CODES.contains(&code) || code == INVALID_PACKET;
                    // The answer to a client's close repeats its code.
                    assert!(is_known || payload.len() == 2, "{code}");
                    is_closed = true;
                }
                0x89 | 0x8a => {}
                other => panic!("a frame begins with {other:#x}"),
            }
        }
    }
}

/// The first frame of a server, and how long all of it is.
fn whole_frame(read: &[u8]) -> Option<(u8, Vec<u8>, usize)> {
    let (head, length) = match *read.get(1)? {
        126 => (4, usize::from(u16::from_be_bytes(read.get(2..4)?.try_into().ok()?))),
        127 => (10, usize::try_from(u64::from_be_bytes(read.get(2..10)?.try_into().ok()?)).ok()?),
        short => (2, usize::from(short)),
    };
    let payload = read.get(head..head + length)?;
    Some((read[0], payload.to_vec(), head + length))
}

fn connect() -> UnixStream {
    let stream = UnixStream::connect(server()).expect("the server listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
    stream
}

fn send(method: &str, uri: &str, body: &[u8]) -> UnixStream {
    let mut stream = connect();
    let length = body.len();
    let head = format!(
        "{method} {uri} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\nContent-Type: text/plain\r\n\
         Content-Length: {length}\r\n\r\n"
    );
    stream.write_all(&[head.as_bytes(), body].concat()).expect("it takes a request");
    stream
}

/// The status and the body.
fn answer(mut stream: UnixStream) -> (u16, String) {
    let mut all = Vec::new();
    stream.read_to_end(&mut all).expect("it answers, and closes");
    let text = String::from_utf8(all).expect("UTF-8");
    let (head, body) = text.split_once("\r\n\r\n").expect("a response");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.expect("a status"), body.to_owned())
}

/// Checks the response to a poll. Returns whether it was the last one.
fn is_last((status, said): (u16, String)) -> bool {
    if status == 400 {
        check_error(&said);
        return true;
    }
    assert_eq!(status, 200, "{said}");
    let packets: Vec<&str> = said.split('\u{1e}').collect();
    for packet in &packets {
        socket_io::check(packet);
    }
    packets.contains(&"1")
}

fn check_error(said: &str) {
    let error: Value = serde_json::from_str(said).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert!(error["code"].is_u64() && error["message"].is_string(), "{error}");
}
