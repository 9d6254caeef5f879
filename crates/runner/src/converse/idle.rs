//! Between two turns: the program stays idle for a while and waits for the next turn.

use std::io;
use std::time::Duration;

use tokio::time::Instant;

use super::prompt::EncodedPrompt;
use crate::run_folder::{FurtherRun, RunFolder};

/// Whether the program is idle, and until when.
#[derive(Debug)]
pub(super) struct IdleTime {
    folder: RunFolder,
    /// The number of the run: the turn that runs, or ran last.
    run: u64,
    /// How long the program may be idle. `None` if it may not: then it ends with its turn.
    most: Option<Duration>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    AtWork,
    /// Its turn has ended, but some of its output may not be read yet.
    Done,
    Idle {
        until: Instant,
    },
}

/// What a program does after its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterTurn {
    /// It waits for the next turn.
    Idle,
    /// It may not wait.
    MustEnd,
}

impl IdleTime {
    pub(super) fn new(folder: RunFolder, run: u64, most_ms: u64) -> Self {
        let most = (0 < most_ms).then_some(Duration::from_millis(most_ms));
        Self { folder, run, most, state: State::AtWork }
    }

    /// The turn has ended. The program becomes idle when everything that it has printed by now is read.
    pub(super) fn note_turn_ended(&mut self) {
        self.state = State::Done;
    }

    /// Makes the program idle if its turn has ended and that was not asked before. `None` otherwise.
    pub(super) fn begin_if_due(&mut self, now: Instant, may_be_idle: bool) -> Option<AfterTurn> {
        if self.state != State::Done {
            return None;
        }
        let until = self.most.filter(|_| may_be_idle).and_then(|most| now.checked_add(most));
        self.state = until.map_or(State::AtWork, |until| State::Idle { until });
        Some(if until.is_some() { AfterTurn::Idle } else { AfterTurn::MustEnd })
    }

    /// Ends the idle time. Returns whether the program was idle.
    pub(super) fn end(&mut self) -> bool {
        let was_idle = self.is_idle();
        self.state = State::AtWork;
        was_idle
    }

    pub(super) fn is_idle(&self) -> bool {
        self.until().is_some()
    }

    pub(super) fn until(&self) -> Option<Instant> {
        match self.state {
            State::Idle { until } => Some(until),
            State::AtWork | State::Done => None,
        }
    }

    /// Takes the further run, which thereby begins. `None` if the program is not idle, or has already taken that
    /// turn.
    ///
    /// # Errors
    /// If the further turn cannot be read.
    pub(super) fn take_further(&mut self) -> io::Result<Option<FurtherRun>> {
        if !self.is_idle() {
            return Ok(None);
        }
        let further: Option<FurtherRun> = self.folder.read(RunFolder::FURTHER)?;
        let further = further.filter(|further| self.run < further.run);
        if let Some(further) = &further {
            (self.run, self.state) = (further.run, State::AtWork);
        }
        Ok(further)
    }

    /// The prompt of a further turn with its images, which can be read once.
    ///
    /// # Errors
    /// If an image cannot be read.
    pub(super) fn prompt(&self, further: FurtherRun) -> io::Result<EncodedPrompt> {
        EncodedPrompt::read(&self.folder, further.prompt, &further.images)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idle(most_ms: u64) -> (tempfile::TempDir, IdleTime) {
        let folder = tempfile::tempdir().unwrap();
        let idle = IdleTime::new(RunFolder::at(folder.path()), 3, most_ms);
        (folder, idle)
    }

    fn write(idle: &IdleTime, run: u64) {
        let further = FurtherRun {
            run,
            prompt: "And now?".to_owned(),
            images: Vec::new(),
            behind: 7,
            stderr_begins: 0,
        };
        idle.folder.write(RunFolder::FURTHER, &further).unwrap();
    }

    fn taken(idle: &mut IdleTime) -> Option<u64> {
        idle.take_further().unwrap().map(|further| further.run)
    }

    fn begin(idle: &mut IdleTime) -> Option<AfterTurn> {
        idle.note_turn_ended();
        idle.begin_if_due(Instant::now(), true)
    }

    #[test]
    fn a_turn_is_taken_once_and_only_by_an_idle_program() {
        let (_folder, mut idle) = idle(1000);
        write(&idle, 4);
        assert_eq!(taken(&mut idle), None, "its turn has not ended");
        assert_eq!(begin(&mut idle), Some(AfterTurn::Idle));
        assert_eq!(taken(&mut idle), Some(4));
        assert!(!idle.is_idle());
        assert_eq!(idle.begin_if_due(Instant::now(), true), None, "it is at work");
        assert_eq!(begin(&mut idle), Some(AfterTurn::Idle));
        assert_eq!(taken(&mut idle), None, "it was asked that already");
        write(&idle, 5);
        assert!(idle.end() && !idle.end());
        assert_eq!(taken(&mut idle), None, "it is not idle any more");
    }

    #[test]
    fn a_program_that_is_not_to_be_idle_is_not() {
        let (_folder, mut never) = idle(0);
        assert_eq!(begin(&mut never), Some(AfterTurn::MustEnd));
        let (_folder, mut idle) = idle(1000);
        idle.note_turn_ended();
        assert_eq!(idle.begin_if_due(Instant::now(), false), Some(AfterTurn::MustEnd));
        assert_eq!(idle.until(), None);
    }
}
