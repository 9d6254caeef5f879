//! Commands for the writer.

use rusqlite::Connection;
use tokenrail_domain::AgentId;
use tokenrail_ports::StoreError;
use tokio::sync::oneshot;

use crate::sqlite::database::reserve::ReserveUse;
use crate::sqlite::error::store_error;

/// A message to the writer.
pub(crate) enum WriterOrder {
    Task(Box<dyn Task>),
    /// The store is idle: checkpoint the whole log and empty it.
    CutLog,
    /// The checkpoint that the writer requested is done.
    CheckpointDone,
    Stop,
}

/// One change of the database. It may run more than once, each time in a transaction that contains nothing of the
/// runs before.
pub(crate) trait WriteCommand: Send + 'static {
    type Answer: Send + 'static;

    /// How many bytes of text or output it writes, about.
    fn bytes(&self) -> usize {
        0
    }

    /// The agent whose output it saves; `None` if it saves anything else.
    fn agent(&self) -> Option<AgentId> {
        None
    }

    fn run(&self, db: &Connection) -> Result<Self::Answer, WriteFailure>;

    /// Whether nobody waits for it, so that it gives way to other commands.
    fn is_in_background(&self) -> bool {
        false
    }

    /// Whether the data that it removes must disappear from the log as well.
    fn empties_log(&self) -> bool {
        false
    }

    /// The part of the reserved disk space that it may use on a full disk.
    fn reserve_use(&self) -> ReserveUse {
        if self.empties_log() { ReserveUse::All } else { ReserveUse::None }
    }
}

/// Why a command had no effect.
#[derive(Debug)]
pub(crate) enum WriteFailure {
    /// It has written nothing.
    Refused(StoreError),
    /// It may have written something, so the transaction must be rolled back.
    Undo(StoreError),
}

impl From<rusqlite::Error> for WriteFailure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Undo(store_error(error))
    }
}

/// A command whose caller waits for the answer.
pub(crate) trait Task: Send {
    fn bytes(&self) -> usize;

    fn agent(&self) -> Option<AgentId>;

    fn is_in_background(&self) -> bool;

    fn empties_log(&self) -> bool;

    fn reserve_use(&self) -> ReserveUse;

    /// Runs the command and keeps its answer. On an error the transaction must be rolled back.
    fn run(&mut self, db: &Connection) -> Result<(), StoreError>;

    /// Answers the caller, after the COMMIT or after its failure.
    fn answer(self: Box<Self>, committed: Result<(), StoreError>);
}

pub(crate) struct WaitingCommand<C: WriteCommand> {
    command: C,
    answer: Option<Result<C::Answer, StoreError>>,
    reply: oneshot::Sender<Result<C::Answer, StoreError>>,
}

impl<C: WriteCommand> WaitingCommand<C> {
    pub(crate) fn new(command: C) -> (Self, oneshot::Receiver<Result<C::Answer, StoreError>>) {
        let (reply, receiver) = oneshot::channel();
        (Self { command, answer: None, reply }, receiver)
    }
}

impl<C: WriteCommand> Task for WaitingCommand<C> {
    fn bytes(&self) -> usize {
        self.command.bytes()
    }

    fn agent(&self) -> Option<AgentId> {
        self.command.agent()
    }

    fn is_in_background(&self) -> bool {
        self.command.is_in_background()
    }

    fn empties_log(&self) -> bool {
        self.command.empties_log()
    }

    fn reserve_use(&self) -> ReserveUse {
        self.command.reserve_use()
    }

    fn run(&mut self, db: &Connection) -> Result<(), StoreError> {
        self.answer = match self.command.run(db) {
            Ok(answer) => Some(Ok(answer)),
            // It has written nothing, but if SQLite has rolled back by itself, the writes of other commands are undone.
            Err(WriteFailure::Refused(error)) if !db.is_autocommit() => Some(Err(error)),
            Err(WriteFailure::Refused(error) | WriteFailure::Undo(error)) => return Err(error),
        };
        Ok(())
    }

    fn answer(self: Box<Self>, committed: Result<(), StoreError>) {
        let answer = match (committed, self.answer) {
            (Err(error), _) => Err(error),
            (Ok(()), Some(answer)) => answer,
            (Ok(()), None) => Err(StoreError::Unavailable("the command did not run".into())),
        };
        // The caller may be gone. The change stands.
        let _gone = self.reply.send(answer);
    }
}
