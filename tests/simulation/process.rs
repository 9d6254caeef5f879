//! The processes of the agents. They outlive the server, and their output stays in the spool.

use std::sync::Arc;

use bytes::Bytes;
use tokenrail_domain::TurnOutcome;
use tokenrail_ports::{ExitStatus, RunEnd};
use tokio::sync::Notify;

use crate::questions::{Asked, OpenQuestions};

/// From the request to stop until SIGTERM, in milliseconds. Until SIGKILL it takes [`KILL_GRACE_MS`].
const TERM_GRACE_MS: u64 = 2500;
pub(crate) const KILL_GRACE_MS: u64 = 7000;
/// How long the supervisor takes to kill processes that outlived the agent.
pub(crate) const SWEEP_MS: u64 = 500;
pub(crate) const NEVER: u64 = u64::MAX;

const INTERRUPTED: &[u8] = br#"{"type":"result","subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_streaming","session_id":"s"}
"#;

/// More output, at its time.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    pub(crate) at_ms: u64,
    pub(crate) bytes: Vec<u8>,
    /// The permission request at the end of this piece.
    pub(crate) asks: Option<Asked>,
    /// This piece completes a result of the agent.
    pub(crate) closes: bool,
}

/// Where an agent hangs forever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hang {
    AfterResult,
    InMessage,
    InTool,
    InLine,
    Silent,
}

/// What an agent does when it is asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenStopped {
    /// Prints a result that says so, and exits.
    Answers { after_ms: u64 },
    /// Is ended by SIGTERM.
    Dies,
    /// Must be killed.
    IgnoresTerm,
}

/// What an agent will do after its prompt.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) pieces: Vec<Piece>,
    pub(crate) exit_ms: u64,
    pub(crate) exit_code: i32,
    /// Processes that outlive the agent, and must be reaped.
    pub(crate) children: u32,
    pub(crate) when_stopped: WhenStopped,
    pub(crate) hang: Option<Hang>,
    /// How its turns end if nothing interferes; `None` if that cannot be predicted.
    pub(crate) outcomes: Option<Vec<TurnOutcome>>,
}

/// One run of an agent.
#[derive(Debug)]
pub(crate) struct Process {
    script: Script,
    spool: Vec<u8>,
    printed: usize,
    questions: OpenQuestions,
    /// Lines about permission requests, printed at the next end of a line.
    unsaid: Vec<u8>,
    /// When each result of the agent was complete.
    closes: Vec<u64>,
    /// When the server last read output of it, or adopted it.
    pub(crate) heard_ms: u64,
    pub(crate) stopped_ms: Option<u64>,
    /// It was asked to stop, and stopped before it would have ended by itself.
    pub(crate) was_cut: bool,
    pub(crate) lost: bool,
    /// Its output could not be read to the end: nothing can be concluded about its journal.
    pub(crate) unread: bool,
    exit_ms: u64,
    status: ExitStatus,
    pub(crate) changed: Arc<Notify>,
}

/// What reading a run returns.
#[derive(Debug)]
pub(crate) enum Look {
    Output(Bytes),
    Ended(RunEnd),
    /// Nothing before this time.
    Later(u64),
}

impl Process {
    pub(crate) fn start(now: u64, mut script: Script) -> Self {
        for piece in &mut script.pieces {
            piece.at_ms = piece.at_ms.saturating_add(now);
        }
        let exit_ms = script.exit_ms.saturating_add(now);
        Self {
            status: ExitStatus::Code(script.exit_code),
            script,
            spool: Vec::new(),
            printed: 0,
            questions: OpenQuestions::default(),
            unsaid: Vec::new(),
            closes: Vec::new(),
            heard_ms: now,
            stopped_ms: None,
            was_cut: false,
            lost: false,
            unread: false,
            exit_ms,
            changed: Arc::new(Notify::new()),
        }
    }

    /// Whether any process of the run is left.
    pub(crate) fn is_alive(&self, now: u64) -> bool {
        now < self.gone_ms()
    }

    /// The supervisor kills what has outlived the agent.
    fn gone_ms(&self) -> u64 {
        let sweep_ms = if 0 < self.script.children && !self.lost { SWEEP_MS } else { 0 };
        self.exit_ms.saturating_add(sweep_ms)
    }

    fn advance(&mut self, now: u64) {
        loop {
            let until = now.min(self.exit_ms);
            let piece_ms = self.script.pieces.get(self.printed).map_or(NEVER, |piece| piece.at_ms);
            let settles_ms = self.questions.next_ms();
            if until < piece_ms.min(settles_ms) || piece_ms.min(settles_ms) == NEVER {
                break;
            }
            if piece_ms <= settles_ms {
                self.print();
            } else {
                self.unsaid.extend(self.questions.settle_next().unwrap_or_default());
            }
            self.speak();
        }
        if self.exit_ms <= now && !self.lost && !self.was_cut {
            self.unsaid.extend(self.questions.settle_all("agent"));
            self.speak();
        }
    }

    fn print(&mut self) {
        let Piece { at_ms, bytes, asks, closes } = self.script.pieces[self.printed].clone();
        self.spool.extend_from_slice(&bytes);
        self.closes.extend(closes.then_some(at_ms));
        self.printed += 1;
        if let Some(asked) = asks {
            self.questions.ask(asked, at_ms);
        }
    }

    /// The process that talks to the agent adds its own lines to the output, but never in the middle of a line.
    fn speak(&mut self) {
        if self.spool.last().is_none_or(|byte| *byte == b'\n') {
            self.spool.append(&mut self.unsaid);
        }
    }

    /// Moves all future output forward by `ms`, because the agent does not wait any longer.
    fn hurry(&mut self, ms: u64) {
        let earlier = |at_ms: u64| if at_ms == NEVER { NEVER } else { at_ms.saturating_sub(ms) };
        if !self.was_cut {
            self.exit_ms = earlier(self.exit_ms);
            for piece in &mut self.script.pieces[self.printed..] {
                piece.at_ms = earlier(piece.at_ms);
            }
        }
    }

    /// Passes an answer to a permission request on.
    pub(crate) fn answer(&mut self, now: u64, request: &str, option: Option<&str>) {
        self.advance(now);
        let waits_less_ms = self.questions.answer(now, request, option);
        self.hurry(waits_less_ms);
        self.changed.notify_waiters();
    }

    /// Whether it waits for an answer to this permission request, and nothing has ended it.
    pub(crate) fn asks(&mut self, now: u64, request: &str) -> bool {
        self.advance(now);
        let untouched = self.stopped_ms.is_none() && !self.lost && !self.unread;
        untouched && now < self.exit_ms && self.questions.contains(request)
    }

    /// The output after `offset`, at most `most` bytes.
    pub(crate) fn look(&mut self, now: u64, offset: usize, most: usize) -> Look {
        self.advance(now);
        if offset < self.spool.len() {
            let end = self.spool.len().min(offset + most);
            self.heard_ms = now;
            return Look::Output(Bytes::copy_from_slice(&self.spool[offset..end]));
        }
        let gone = self.gone_ms();
        if gone <= now {
            let status = if self.lost { ExitStatus::Lost } else { self.status };
            let reaped = if self.lost { 0 } else { self.script.children };
            return Look::Ended(RunEnd { status, reaped, ..RunEnd::default() });
        }
        let piece_ms = self.script.pieces.get(self.printed).map_or(NEVER, |piece| piece.at_ms);
        let next = piece_ms.min(self.questions.next_ms());
        Look::Later(if next <= self.exit_ms { next } else { gone.max(now + 1) })
    }

    /// Asks it to stop. Asking again changes nothing.
    pub(crate) fn stop(&mut self, now: u64) {
        if self.stopped_ms.is_some() {
            return;
        }
        self.advance(now);
        self.stopped_ms = Some(now);
        let (dies_ms, status) = match self.script.when_stopped {
            WhenStopped::Answers { after_ms } => (now + after_ms, ExitStatus::Code(0)),
            WhenStopped::Dies => (now + TERM_GRACE_MS, ExitStatus::Signal(15)),
            WhenStopped::IgnoresTerm => (now + KILL_GRACE_MS, ExitStatus::Signal(9)),
        };
        if self.exit_ms <= dies_ms {
            return;
        }
        self.was_cut = true;
        (self.exit_ms, self.status) = (dies_ms, status);
        let more =
            self.script.pieces[self.printed..].iter().take_while(|piece| piece.at_ms < dies_ms).count();
        self.script.pieces.truncate(self.printed + more);
        if let WhenStopped::Answers { .. } = self.script.when_stopped {
            // It begins with a line break, because the line that it was printing is cut.
            let settled =
                std::mem::take(&mut self.unsaid).into_iter().chain(self.questions.settle_all("cancel"));
            let bytes = std::iter::once(b'\n').chain(settled).chain(INTERRUPTED.iter().copied()).collect();
            self.script.pieces.push(Piece { at_ms: dies_ms, bytes, asks: None, closes: false });
        }
        self.changed.notify_waiters();
    }

    /// Its supervisor has died, and the process with it.
    pub(crate) fn lose(&mut self, now: u64) {
        self.advance(now);
        self.lost = true;
        self.exit_ms = now;
        self.script.pieces.truncate(self.printed);
    }

    /// Whether the `index`-th turn of the run ended by itself before that time: by its own result, or with its
    /// process.
    pub(crate) fn ended_by_itself(&self, index: usize, before_ms: u64) -> bool {
        let closed = self.closes.get(index).is_some_and(|at| *at <= before_ms);
        self.unread || closed || (!self.was_cut && self.exit_ms <= before_ms)
    }

    /// Whether it had been asked to stop before, for any reason, and was gone at that time. Then the output already
    /// contained the end of the turn, although the server had not read it yet.
    pub(crate) fn was_gone(&self, at_ms: u64) -> bool {
        self.exit_ms <= at_ms && self.stopped_ms.is_some_and(|stopped| stopped < at_ms)
    }

    /// Where it hangs, if it has done everything else.
    pub(crate) fn hangs(&self) -> Option<Hang> {
        self.script.hang.filter(|_| self.printed == self.script.pieces.len())
    }

    /// Everything that it has printed. Call it only after the process is gone.
    pub(crate) fn output(&self) -> &[u8] {
        &self.spool
    }

    /// How its turns must have ended; `None` if something interfered.
    pub(crate) fn outcomes(&self) -> Option<&[TurnOutcome]> {
        let untouched = self.stopped_ms.is_none() && !self.lost && !self.unread;
        self.script.outcomes.as_deref().filter(|_| untouched)
    }
}
