//! The process that speaks with the program, from start to end.
//!
//! * [`further`]: a further turn of a program that is idle

mod further;

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use bytes::Bytes;
use rustix::process::Signal;
use tokenrail_domain::ErrorClass;
use tokenrail_ports::{AddedLine, FailureLine, Line};
use tokio::runtime;
use tokio::signal::unix::{Signal as SignalStream, SignalKind, signal};
use tokio::time::Instant;

use super::conversation::{Conversation, Outbox};
use super::fifo::ConverseFifo;
use super::force::Force;
use super::idle::{AfterTurn, IdleTime};
use super::pending_requests::{PendingRequests, Settled};
use super::printed::Printer;
use super::program::{Deed, Output, Program, exit_code};
use super::protocols::conversation_in;
use crate::deadline::passed;
use crate::run_folder::{ConverseLimits, ConverseMessage, Opening, Protocol, RunFolder};
use crate::{FramerLimits, LineFramer};

/// Runs the program and returns its exit code.
pub(super) fn run(
    (protocol, opening): (Protocol, Opening),
    requests: PendingRequests<'_>,
    folder: &RunFolder,
    program: &[OsString],
) -> io::Result<u8> {
    let limits = opening.limits;
    let idle = IdleTime::new(folder.clone(), opening.run, limits.idle_ms);
    // For ACP this opens the agent's folder, so it must happen before the program starts: the program could replace the
    // folder.
    let (mut conversation, image_bytes) = conversation_in(protocol, opening, folder)?;
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut exchange = Exchange::start(folder, limits, requests, idle, program)?;
        exchange.image_bytes = image_bytes;
        exchange.run(&mut *conversation).await
    })
}

/// The communication with one program.
struct Exchange<'a> {
    limits: ConverseLimits,
    /// The size of the images in the message of this turn. They do not count as input that the program does not read.
    image_bytes: usize,
    program: Program,
    framer: LineFramer,
    /// How many bytes the framer has received.
    fed: u64,
    printer: Printer<File>,
    fifo: ConverseFifo,
    requests: PendingRequests<'a>,
    idle: IdleTime,
    /// The server has announced a further turn.
    has_further: bool,
    interrupt: SignalStream,
    terminate: SignalStream,
    /// Nothing more will be said. The program's input is closed when the program has taken everything.
    over: bool,
    force: Force,
}

enum Happening {
    Program(Deed),
    Messages,
    Interrupt,
    Terminate,
    RequestDue,
    IdleOver,
    ForceDue,
}

impl<'a> Exchange<'a> {
    fn start(
        folder: &RunFolder,
        limits: ConverseLimits,
        requests: PendingRequests<'a>,
        idle: IdleTime,
        program: &[OsString],
    ) -> io::Result<Self> {
        let (interrupt, terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let printer = Printer::new(File::from(io::stdout().as_fd().try_clone_to_owned()?));
        Ok(Self {
            limits,
            image_bytes: 0,
            program: Program::start(folder, program)?,
            // Nobody reads the beginning of a line that is too long.
            framer: LineFramer::new(FramerLimits { line_bytes: limits.line_bytes, head_bytes: 0 }),
            fed: 0,
            printer,
            fifo: ConverseFifo::open(folder)?,
            requests,
            idle,
            has_further: false,
            interrupt,
            terminate,
            over: false,
            force: Force::new(limits.exit_grace_ms),
        })
    }

    async fn run(&mut self, conversation: &mut dyn Conversation) -> io::Result<u8> {
        self.converse_with(conversation, |conversation, out| conversation.open(out))?;
        let status = loop {
            match self.next().await? {
                Happening::Program(Deed::Printed) => {
                    self.read_output(conversation)?;
                }
                Happening::Program(Deed::Taken(bytes)) => self.program.has_taken(bytes),
                Happening::Program(Deed::InputClosed) => self.close_input()?,
                Happening::Program(Deed::Exited(status)) => break status,
                Happening::Messages => self.read_messages(conversation)?,
                Happening::Interrupt => self.cancel(conversation)?,
                Happening::Terminate => {
                    // If SIGINT came before, the program gets the protocol's cancel twice, and both mean the same. It
                    // may get the signal before the cancel, which is only queued here.
                    self.cancel(conversation)?;
                    self.program.signal(Signal::TERM);
                }
                Happening::RequestDue => {
                    while let Some(settled) = self.requests.take_expired(Instant::now()) {
                        self.settle(settled, conversation)?;
                    }
                }
                Happening::IdleOver => self.end(),
                Happening::ForceDue => {
                    if let Some(signal) = self.force.next_signal() {
                        self.program.signal(signal);
                    }
                }
            }
            if self.has_further {
                self.begin_further(conversation)?;
            }
            if self.over && self.program.has_taken_all() && self.program.can_be_told() {
                self.close_input()?;
            }
        };
        // The program has exited, so it must not become idle, whatever its last lines say.
        self.close_input()?;
        self.drain(conversation)?;
        self.printer.finish()?;
        // `Supervisor::reap` notices that this process exits (`supervisor/supervise.rs`, `until_end_or_stop`).
        Ok(exit_code(status))
    }

    async fn next(&mut self) -> io::Result<Happening> {
        let (request_due, force_due) = (self.requests.next_deadline(), self.force.due());
        let idle_until = self.idle.until();
        let Self { program, fifo, interrupt, terminate, .. } = self;
        tokio::select! {
            deed = program.deed() => deed.map(Happening::Program),
            ready = fifo.readable() => ready.map(|()| Happening::Messages),
            _ = interrupt.recv() => Ok(Happening::Interrupt),
            _ = terminate.recv() => Ok(Happening::Terminate),
            () = passed(request_due) => Ok(Happening::RequestDue),
            () = passed(idle_until) => Ok(Happening::IdleOver),
            () = passed(force_due) => Ok(Happening::ForceDue),
        }
    }

    /// Reads the available output of the program. Returns the number of bytes.
    ///
    /// The path of a token begins here if the agent speaks a protocol. The next steps are `heard`, `printed.rs`, and
    /// `supervisor/output.rs`, which copies what this process prints into the spool.
    fn read_output(&mut self, conversation: &mut dyn Conversation) -> io::Result<usize> {
        match self.program.read(self.limits.read_bytes)? {
            Output::Bytes(bytes) => {
                self.heard(&bytes, conversation)?;
                Ok(bytes.len())
            }
            Output::Closed => {
                self.end();
                self.force.begin();
                Ok(0)
            }
            Output::Nothing => Ok(0),
        }
    }

    /// Prints each line (`printed.rs`) before the conversation's response to it is sent.
    fn heard(&mut self, bytes: &Bytes, conversation: &mut dyn Conversation) -> io::Result<()> {
        let mut written = 0;
        let before = self.fed;
        self.fed += bytes.len() as u64;
        self.framer.feed(bytes.clone());
        while let Some(line) = self.framer.next_line() {
            let mut out = Outbox::default();
            match &line.line {
                Line::Whole(text) => conversation.line(text, &mut out),
                _ => conversation.line_too_long(&mut out),
            }
            if out.is_empty() {
                continue;
            }
            let end = (line.end_offset - before) as usize;
            self.printer.program(&bytes[written..end])?;
            written = end;
            self.apply(out, conversation)?;
        }
        self.printer.program(&bytes[written..])?;
        // Lines that arrive together with the result belong to the same turn.
        self.idle_or_end()
    }

    fn read_messages(&mut self, conversation: &mut dyn Conversation) -> io::Result<()> {
        for message in self.fifo.read()? {
            match message {
                ConverseMessage::Answer(answer) => {
                    if let Some(settled) = self.requests.answer(answer) {
                        self.settle(settled, conversation)?;
                    }
                }
                ConverseMessage::Further { .. } => self.has_further = true,
            }
        }
        Ok(())
    }

    /// Cancels the turn as the protocol defines it. A program that is idle ends instead.
    fn cancel(&mut self, conversation: &mut dyn Conversation) -> io::Result<()> {
        self.requests.cancel_turn();
        if self.idle.is_idle() {
            self.end();
            return Ok(());
        }
        while let Some(settled) = self.requests.take_cancelled() {
            self.settle(settled, conversation)?;
        }
        self.converse_with(conversation, |conversation, out| conversation.cancel(out))
    }

    /// Settles a request. The added line comes first: whatever the program prints about the decision comes after it in
    /// the spool.
    fn settle(&mut self, settled: Settled, conversation: &mut dyn Conversation) -> io::Result<()> {
        let Settled { key, choice, line } = settled;
        self.printer.added(&line)?;
        self.converse_with(conversation, |conversation, out| conversation.answer(&key, &choice, out))
    }

    /// Lets the conversation act, and carries out what it wants.
    fn converse_with(
        &mut self,
        conversation: &mut dyn Conversation,
        what: impl FnOnce(&mut dyn Conversation, &mut Outbox),
    ) -> io::Result<()> {
        let mut out = Outbox::default();
        what(conversation, &mut out);
        self.apply(out, conversation)
    }

    fn apply(&mut self, out: Outbox, conversation: &mut dyn Conversation) -> io::Result<()> {
        let Outbox { to_program, added, asked, withdrawn, idle, over } = out;
        for line in &added {
            self.printer.added(line)?;
        }
        for request in asked {
            let (line, settled) = self.requests.ask(request, Instant::now());
            self.printer.added(&line)?;
            if let Some(settled) = settled {
                self.settle(settled, conversation)?;
            }
        }
        for key in withdrawn {
            if let Some(line) = self.requests.withdraw(&key) {
                self.printer.added(&line)?;
            }
        }
        let unread_bytes = self.limits.unread_bytes.saturating_add(self.image_bytes);
        if unread_bytes < self.program.queue_input(&to_program) {
            let text =
                "the agent does not read its input, and more is waiting than limits.unread_bytes allows; send the message \
                 again, or raise the limit".to_owned();
            let failure = FailureLine::new(ErrorClass::Process, "input_unread", text);
            self.printer.added(&AddedLine::Error(failure))?;
            self.close_input()?;
        }
        if over {
            self.end();
        } else if idle && !self.over {
            self.idle.note_turn_ended();
        }
        Ok(())
    }

    /// Nothing more will be said. When its input is closed, the program ends by itself. If it was working, this
    /// process does not limit how long that takes, because the program may have work in the background. If it was
    /// idle, it gets a grace period, because nobody reads its output any more.
    fn end(&mut self) {
        self.over = true;
        if self.idle.end() && self.force.due().is_none() {
            self.force.begin();
        }
    }

    /// If the turn has ended: the program becomes idle and waits for a further turn, or is ended if the turn was
    /// cancelled (`PendingRequests::is_cancelled`).
    fn idle_or_end(&mut self) -> io::Result<()> {
        // In the middle of a line the program has more to say. While it waits for an answer, it is still working.
        let has_said_all = self.printer.is_between_lines() && self.requests.is_empty();
        let may_be_idle = has_said_all && !self.requests.is_cancelled() && self.program.can_be_told();
        match self.idle.begin_if_due(Instant::now(), may_be_idle) {
            Some(AfterTurn::Idle) => self.printer.added(&AddedLine::Idle {}),
            Some(AfterTurn::MustEnd) => {
                self.end();
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Closes the program's input, and ends the communication ([`Exchange::end`]). The program can receive no more
    /// answers, so its permission requests are closed too.
    fn close_input(&mut self) -> io::Result<()> {
        self.program.close_input();
        self.end();
        for line in self.requests.close() {
            self.printer.added(&line)?;
        }
        Ok(())
    }
}
