//! What the writer is asked to do.

use rusqlite::Connection;
use tokenrail_ports::StoreError;
use tokio::sync::oneshot;

use crate::error::store_error;
use crate::reserve::ReserveUse;

/// What is sent to the writer.
pub(crate) enum Order {
    Task(Box<dyn Task>),
    /// Nothing else is going on: take the log over into the database file and empty it.
    CutLog,
    Stop,
}

/// One change of the database. It may be run more than once, each time in a transaction in which nothing of
/// the times before is left.
pub(crate) trait Command: Send + 'static {
    type Answer: Send + 'static;

    /// About how much it writes.
    fn bytes(&self) -> usize;

    fn run(&self, db: &Connection) -> Result<Self::Answer, Failure>;

    /// Whether what it removes must not stay in the log either.
    fn empties_log(&self) -> bool {
        false
    }

    /// What it may use, on a full disk, of the room that is kept.
    fn reserve_use(&self) -> ReserveUse {
        if self.empties_log() { ReserveUse::All } else { ReserveUse::None }
    }
}

/// Why a command did nothing.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It has looked, and has written nothing.
    Refused(StoreError),
    /// It may have written something, which must be undone.
    Undo(StoreError),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Undo(store_error(error))
    }
}

/// A command with somebody who waits for its answer.
pub(crate) trait Task: Send {
    fn bytes(&self) -> usize;

    fn empties_log(&self) -> bool;

    fn reserve_use(&self) -> ReserveUse;

    /// Runs the command and keeps its answer; an error where everything must be undone.
    fn run(&mut self, db: &Connection) -> Result<(), StoreError>;

    /// The transaction has been committed, or not.
    fn answer(self: Box<Self>, committed: Result<(), StoreError>);
}

pub(crate) struct Waiting<C: Command> {
    command: C,
    answer: Option<Result<C::Answer, StoreError>>,
    reply: oneshot::Sender<Result<C::Answer, StoreError>>,
}

impl<C: Command> Waiting<C> {
    pub(crate) fn new(command: C) -> (Self, oneshot::Receiver<Result<C::Answer, StoreError>>) {
        let (reply, receiver) = oneshot::channel();
        (Self { command, answer: None, reply }, receiver)
    }
}

impl<C: Command> Task for Waiting<C> {
    fn bytes(&self) -> usize {
        self.command.bytes()
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
            Err(Failure::Refused(error)) => Some(Err(error)),
            Err(Failure::Undo(error)) => return Err(error),
        };
        Ok(())
    }

    fn answer(self: Box<Self>, committed: Result<(), StoreError>) {
        let answer = match (committed, self.answer) {
            (Err(error), _) => Err(error),
            (Ok(()), Some(answer)) => answer,
            (Ok(()), None) => Err(StoreError::Unavailable("the command was not run".into())),
        };
        // Whoever asked may have gone away meanwhile; the change stands.
        let _gone = self.reply.send(answer);
    }
}
