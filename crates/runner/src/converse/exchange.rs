//! The process that speaks with the program, from start to end.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use rustix::process::{Pid, Signal, kill_process_group};
use tokenrail_ports::Line;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::process::{Child, ChildStdin, Command};
use tokio::runtime;
use tokio::signal::unix::{Signal as SignalStream, SignalKind, signal};
use tokio::time::{Instant, sleep_until};

use super::acp::AcpConversation;
use super::claude::ClaudeConversation;
use super::codex::CodexConversation;
use super::conversation::{Conversation, Outbox};
use super::opening::ConverseLimits;
use super::own_line::OwnLine;
use super::questions::{Questions, Settled};
use super::rest::{NextTurn, Rest, Told};
use super::spool::Spool;
use super::{ANSWER_BYTES, Opening, Protocol};
use crate::process::RunFolder;
use crate::supervisor::THIS_PROGRAM;
use crate::{FramerLimits, LineFramer};

/// What is added to the number of the signal that has ended a program, as shells do.
const SIGNALLED: i32 = 128;
/// What a pipe holds at most, where nobody has made it larger.
const PIPE_BYTES: usize = 64 << 10;
/// Where it is not known how the program has ended.
const UNKNOWN: u8 = 1;

/// Runs the program; gives its exit code.
pub(super) fn run(protocol: Protocol, run_folder: &Path, program: &[OsString]) -> io::Result<u8> {
    let mut opening = Vec::new();
    io::stdin().lock().read_to_end(&mut opening)?;
    let opening: Opening = serde_json::from_slice(&opening)?;
    let (questions, limits, folder) = (Questions::new(&opening), opening.limits, RunFolder::at(run_folder));
    let rest = Rest::new(folder.clone(), opening.turn, limits.rest_ms);
    // Before there is a program that could be quicker: an agent's folder is opened here.
    let mut conversation: Box<dyn Conversation> = match protocol {
        Protocol::Acp => Box::new(AcpConversation::new(opening)),
        Protocol::Claude => Box::new(ClaudeConversation::new(opening.prompt)),
        Protocol::CodexAppServer => Box::new(CodexConversation::new(opening)),
    };
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut exchange = Exchange::start(&folder, limits, questions, rest, program)?;
        exchange.run(&mut *conversation).await
    })
}

/// The program, and what goes to and fro.
struct Exchange {
    limits: ConverseLimits,
    child: Child,
    group: Pid,
    /// None when it was closed.
    input: Option<ChildStdin>,
    /// What the program has not taken yet.
    unsent: BytesMut,
    /// None when the program has closed it.
    output: Option<pipe::Receiver>,
    framer: LineFramer,
    /// How many bytes the framer was fed.
    fed: u64,
    spool: Spool<File>,
    /// Open for writing too, so that it has no end.
    answers: pipe::Receiver,
    answer: Vec<u8>,
    questions: Questions,
    rest: Rest,
    interrupt: SignalStream,
    terminate: SignalStream,
    /// The program has been told all.
    over: bool,
    /// When it is ended by force, and by which signals.
    force_at: Option<Instant>,
    force: std::array::IntoIter<Signal, 2>,
}

enum Happening {
    Output,
    Written(usize),
    InputClosed,
    Answers,
    Interrupt,
    Terminate,
    QuestionDue,
    RestOver,
    ForceDue,
    Exited(ExitStatus),
}

impl Exchange {
    fn start(
        folder: &RunFolder,
        limits: ConverseLimits,
        questions: Questions,
        rest: Rest,
        program: &[OsString],
    ) -> io::Result<Self> {
        let (interrupt, terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let answers = pipe::OpenOptions::new().read_write(true).open_receiver(folder.answers())?;
        let spool = Spool::new(File::from(io::stdout().as_fd().try_clone_to_owned()?));
        // By way of a stage that ties it to this process: it ends with it.
        let mut child = Command::new(THIS_PROGRAM)
            .arg0("tokenrail")
            .args(["converse", "--exec-for", &std::process::id().to_string(), "-"])
            .arg(folder.path())
            .arg("--")
            .args(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A signal to the group of this process is for this process.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let gone = || io::Error::other("the program has no standard streams");
        let output = child.stdout.take().ok_or_else(gone)?.into_owned_fd()?;
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed())).ok_or_else(gone)?;
        let head_bytes = ANSWER_BYTES.min(limits.line_bytes);
        Ok(Self {
            limits,
            input: Some(child.stdin.take().ok_or_else(gone)?),
            child,
            group,
            unsent: BytesMut::new(),
            output: Some(pipe::Receiver::from_owned_fd(output)?),
            framer: LineFramer::new(FramerLimits { line_bytes: limits.line_bytes, head_bytes }),
            fed: 0,
            spool,
            answers,
            answer: Vec::new(),
            questions,
            rest,
            interrupt,
            terminate,
            over: false,
            force_at: None,
            force: [Signal::TERM, Signal::KILL].into_iter(),
        })
    }

    async fn run(&mut self, conversation: &mut dyn Conversation) -> io::Result<u8> {
        self.tell(conversation, |conversation, out| conversation.open(out))?;
        let status = loop {
            match self.next().await? {
                Happening::Output => {
                    self.read_output(conversation)?;
                }
                Happening::Written(bytes) => self.unsent.advance(bytes),
                Happening::InputClosed => self.close_input()?,
                Happening::Answers => self.read_answers(conversation)?,
                Happening::Interrupt => self.cancel(conversation)?,
                Happening::Terminate => {
                    self.cancel(conversation)?;
                    self.signal(Signal::TERM);
                }
                Happening::QuestionDue => {
                    while let Some(settled) = self.questions.take_expired(Instant::now()) {
                        self.settle(settled, conversation)?;
                    }
                }
                Happening::RestOver => self.end_rest(),
                Happening::ForceDue => self.force(),
                Happening::Exited(status) => break status,
            }
            if self.over && self.unsent.is_empty() && self.input.is_some() {
                self.close_input()?;
            }
        };
        // All that it has written itself is in the pipe by now; others may write to it for ever.
        let mut drained = 0;
        while drained < PIPE_BYTES {
            match self.read_output(conversation)? {
                0 => break,
                read => drained += read,
            }
        }
        self.spool.finish()?;
        let code = status.code().or_else(|| Some(SIGNALLED + status.signal()?));
        Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(UNKNOWN))
    }

    async fn next(&mut self) -> io::Result<Happening> {
        let (question_due, force_due) = (self.questions.next_deadline(), self.force_at);
        let rest_over = self.rest.until();
        let Self { output, input, unsent, answers, interrupt, terminate, child, .. } = self;
        tokio::select! {
            ready = readable(output.as_ref()) => ready.map(|()| Happening::Output),
            written = write(input.as_mut(), unsent) => Ok(written.map_or(Happening::InputClosed, Happening::Written)),
            ready = answers.readable() => ready.map(|()| Happening::Answers),
            _ = interrupt.recv() => Ok(Happening::Interrupt),
            _ = terminate.recv() => Ok(Happening::Terminate),
            () = passed(question_due) => Ok(Happening::QuestionDue),
            () = passed(rest_over) => Ok(Happening::RestOver),
            () = passed(force_due) => Ok(Happening::ForceDue),
            status = child.wait() => status.map(Happening::Exited),
        }
    }

    /// Takes what there is of the program's output; gives how many bytes that were.
    fn read_output(&mut self, conversation: &mut dyn Conversation) -> io::Result<usize> {
        let Some(output) = &self.output else { return Ok(0) };
        let mut bytes = BytesMut::zeroed(self.limits.read_bytes);
        match output.try_read(&mut bytes) {
            Ok(0) => {
                // It has closed its output: there is nothing to be heard from it any more.
                self.output = None;
                self.over = true;
                self.force_at = self.after_grace();
                Ok(0)
            }
            Ok(read) => {
                bytes.truncate(read);
                self.heard(&bytes.freeze(), conversation)?;
                Ok(read)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Writes each line to the spool before the conversation answers it.
    fn heard(&mut self, bytes: &Bytes, conversation: &mut dyn Conversation) -> io::Result<()> {
        let mut written = 0;
        let before = self.fed;
        self.fed += bytes.len() as u64;
        self.framer.feed(bytes.clone());
        while let Some(line) = self.framer.next_line() {
            let Line::Whole(text) = &line.line else { continue };
            let mut out = Outbox::default();
            conversation.line(text, &mut out);
            if out.is_empty() {
                continue;
            }
            let end = (line.end_offset - before) as usize;
            self.spool.program(&bytes[written..end])?;
            written = end;
            self.apply(out, conversation)?;
        }
        self.spool.program(&bytes[written..])
    }

    fn read_answers(&mut self, conversation: &mut dyn Conversation) -> io::Result<()> {
        let mut bytes = [0; ANSWER_BYTES];
        match self.answers.try_read(&mut bytes) {
            Ok(read) => self.answer.extend_from_slice(&bytes[..read]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
        while let Some(end) = memchr::memchr(b'\n', &self.answer) {
            let line: Vec<u8> = self.answer.drain(..=end).collect();
            match serde_json::from_slice(&line) {
                Ok(Told::Answer(answer)) => {
                    if let Some(settled) = self.questions.answer(answer) {
                        self.settle(settled, conversation)?;
                    }
                }
                Ok(Told::Next { .. }) => {
                    if let Some(next) = self.rest.take_next() {
                        self.go_on(next, conversation)?;
                    }
                }
                // Nobody but the server writes here.
                Err(_) => {}
            }
        }
        // Nothing that makes sense is this long.
        self.answer.truncate(ANSWER_BYTES);
        Ok(())
    }

    /// Ends the turn as the protocol has it.
    fn cancel(&mut self, conversation: &mut dyn Conversation) -> io::Result<()> {
        self.questions.cancel_turn();
        if self.rest.is_resting() {
            self.end_rest();
            return Ok(());
        }
        while let Some(settled) = self.questions.take_cancelled() {
            self.settle(settled, conversation)?;
        }
        self.tell(conversation, |conversation, out| conversation.cancel(out))
    }

    fn settle(&mut self, settled: Settled, conversation: &mut dyn Conversation) -> io::Result<()> {
        let Settled { key, choice, line } = settled;
        self.spool.own(&line)?;
        self.tell(conversation, |conversation, out| conversation.answer(&key, &choice, out))
    }

    fn tell(
        &mut self,
        conversation: &mut dyn Conversation,
        what: impl FnOnce(&mut dyn Conversation, &mut Outbox),
    ) -> io::Result<()> {
        let mut out = Outbox::default();
        what(conversation, &mut out);
        self.apply(out, conversation)
    }

    fn apply(&mut self, out: Outbox, conversation: &mut dyn Conversation) -> io::Result<()> {
        let Outbox { to_program, own, asked, withdrawn, rests, over } = out;
        for line in &own {
            self.spool.own(line)?;
        }
        for question in asked {
            let (line, settled) = self.questions.ask(question, Instant::now());
            self.spool.own(&line)?;
            if let Some(settled) = settled {
                self.settle(settled, conversation)?;
            }
        }
        for key in withdrawn {
            if let Some(line) = self.questions.withdraw(&key) {
                self.spool.own(&line)?;
            }
        }
        self.unsent.extend_from_slice(&to_program);
        if self.limits.unread_bytes < self.unsent.len() {
            let text = "the agent does not read what it is told".to_owned();
            self.spool.own(&OwnLine::Error { class: "process", code: "input_unread", text })?;
            self.close_input()?;
        }
        // The program ends by itself then. How long it may live on is not for this process to say: something of it may
        // go on in the background.
        self.over |= over;
        if self.over {
            self.rest.end();
        } else if rests {
            self.begin_rest()?;
        }
        Ok(())
    }

    /// The program has done what it was asked. Unless it is being stopped, it waits for the next turn.
    fn begin_rest(&mut self) -> io::Result<()> {
        let may_rest = !self.questions.is_cancelled() && self.input.is_some();
        if !may_rest || !self.rest.begin(Instant::now()) {
            self.over = true;
            return Ok(());
        }
        self.spool.own(&OwnLine::Rests {})
    }

    /// Nobody has asked for anything more: with its input closed the program ends.
    fn end_rest(&mut self) {
        self.rest.end();
        self.over = true;
    }

    /// Begins the next turn. That the program is asked stands in the spool before it is: whoever reads that knows
    /// whether it was.
    fn go_on(&mut self, next: NextTurn, conversation: &mut dyn Conversation) -> io::Result<()> {
        self.spool.own(&OwnLine::Next { turn: next.turn })?;
        self.questions.begin_turn(next.turn);
        self.tell(conversation, |conversation, out| conversation.go_on(next.prompt, out))
    }

    /// Nothing more can be said to the program, so it cannot be answered either.
    fn close_input(&mut self) -> io::Result<()> {
        self.input = None;
        self.unsent.clear();
        for line in self.questions.close() {
            self.spool.own(&line)?;
        }
        Ok(())
    }

    fn after_grace(&self) -> Option<Instant> {
        Instant::now().checked_add(Duration::from_millis(self.limits.exit_grace_ms))
    }

    fn force(&mut self) {
        let signal = self.force.next();
        self.force_at = signal.and_then(|_| self.after_grace());
        if let Some(signal) = signal {
            self.signal(signal);
        }
    }

    fn signal(&self, signal: Signal) {
        // It may have ended just now.
        let _ = kill_process_group(self.group, signal);
    }
}

/// Gives the program what it takes of that; none where it takes nothing more, ever.
async fn write(input: Option<&mut ChildStdin>, unsent: &[u8]) -> Option<usize> {
    match input {
        Some(input) if !unsent.is_empty() => input.write(unsent).await.ok(),
        _ => std::future::pending().await,
    }
}

async fn readable(output: Option<&pipe::Receiver>) -> io::Result<()> {
    match output {
        Some(output) => output.readable().await,
        None => std::future::pending().await,
    }
}

async fn passed(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
