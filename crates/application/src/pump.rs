//! One run of an agent: reads its output, commits it, and announces what is committed.
//!
//! The methods of [`Pump`], by file:
//!
//! | file | methods |
//! | --- | --- |
//! | this one | the loop: `run`, `carry`, `lines`, `progress`; a batch: `take`, `begin_save`, `wait_until_saved`, `after_save` |
//! | [`interruption`] | what else happens in the loop: `react` |
//! | [`pace`] | how much is read before it is saved: `has_room`; waiting for followers: `put_off`, `announce_or_hold`, `held_until`, `release` |
//! | [`finish`] | the end of a run: `finish`, `end_without_room`, `flush`, `leave` |
//! | [`stop`] | `stop_as_told`, `stop`, `carry_out`, `flood`, `ask_to_stop`, `until_gone`, `abort` |
//! | [`answers`] | permission requests: `answer`, `find_known_requests`, `update_needs`, `tell_settled` |
//! | [`own_turns`] | a turn that the agent begins by itself: `begin_own_turns` |
//! | [`full_disk`] | space for the journal: `may_free_spool`, `free_spool` |
//! | [`waits`] | none: the futures that the loop waits for, such as `stop_signal` |

mod answers;
mod finish;
mod full_disk;
mod interruption;
mod own_turns;
mod pace;
mod stop;
mod waits;

use std::mem;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::StreamExt as _;
use tokenrail_domain::{AgentId, PermissionReply, Timestamp, Turn};
use tokenrail_ports::{Append, IAgentRun, OutputLine, RunEnd, RunOutput, StoreError, TurnStep};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use self::answers::{OpenRequestsOfRun, WaitingAnswers};
use self::full_disk::FullDisk;
use self::interruption::Interruption;
use self::pace::Held;
use self::stop::Stopping;
use self::waits::{Waits, expiry, passed};
use crate::announce::announce;
use crate::core::{Core, SaveError};
use crate::open_requests::RequestChange;
use crate::own_notices::UNSHOWN_OUTPUT;
use crate::planted::{self, Bug};
use crate::recorder::{Mark, Recorded, Recorder};
use crate::tails::Tail;
use crate::task_handle::{TaskHandle, TurnChannels};
use crate::timers::{TurnTimes, Watched, next_deadline};
use crate::verdict::{Flood, Stop};

/// Carries one run of an agent into its journal. While one batch is being committed, the next one is read and parsed.
/// So a batch is as small as one line if the agent prints little, and as large as the limits allow in a flood.
pub(crate) struct Pump {
    core: Arc<Core>,
    handle: Arc<TaskHandle>,
    agent: AgentId,
    tail: Arc<Tail>,
    recorder: Recorder,
    run: Box<dyn IAgentRun>,
    /// The turn that began this run.
    first_turn: Turn,
    cancel: CancellationToken,
    answers: WaitingAnswers,
    stopping: Stopping,
    full_disk: FullDisk,
    /// The batch that is being saved.
    in_flight: Option<InFlight>,
    /// How much of this run is in the journal.
    saved: Mark,
    /// What is saved and not announced yet.
    held: Option<Held>,
    /// What the next append does to the turn.
    step: TurnStep,
    /// How the run ended. `None` until it has ended, and while an idle process is being ended because its turn is
    /// being stopped.
    ended: Option<RunEnd>,
    times: TurnTimes,
}

/// A batch that has just been saved, and what is to be told now.
struct SavedBatch {
    append: Append,
    /// How much of this run is in the journal now.
    mark: Mark,
    /// The permission requests that the batch settles, each with the reply.
    settled: Vec<(String, PermissionReply)>,
    /// What the batch changes in the open permission requests.
    changes: Vec<RequestChange>,
}

/// What a pump is built from.
pub(crate) struct PumpStart {
    pub(crate) core: Arc<Core>,
    pub(crate) handle: Arc<TaskHandle>,
    pub(crate) tail: Arc<Tail>,
    pub(crate) recorder: Recorder,
    pub(crate) run: Box<dyn IAgentRun>,
    pub(crate) turn: Turn,
    pub(crate) channels: TurnChannels,
    /// How long the turn had run before the server was restarted.
    pub(crate) ran_ms: u64,
}

/// A batch that is being saved. If the save fails, nothing in [`SavedBatch`] is announced or told.
type InFlight = Pin<Box<dyn Future<Output = Result<SavedBatch, SaveError>> + Send>>;

impl Pump {
    pub(crate) fn new(start: PumpStart) -> Self {
        let PumpStart { core, handle, tail, recorder, run, turn, channels, ran_ms } = start;
        let TurnChannels { cancel, answers } = channels;
        let answers =
            WaitingAnswers::new(answers, OpenRequestsOfRun { core: Arc::clone(&core), agent: turn.agent });
        let now = Instant::now();
        let ran = std::time::Duration::from_millis(ran_ms).min(core.limits.run.turn_timeout);
        Self {
            core,
            handle,
            agent: turn.agent,
            tail,
            in_flight: None,
            saved: recorder.mark(),
            recorder,
            run,
            first_turn: turn,
            cancel,
            answers,
            stopping: Stopping::default(),
            full_disk: FullDisk::default(),
            held: None,
            step: TurnStep::Continue,
            ended: None,
            times: TurnTimes {
                started: now.checked_sub(ran).unwrap_or(now),
                last_output: now,
                result_at: None,
            },
        }
    }

    /// Runs until the agent has ended and all its output is in the journal. Then the agent's task goes on (`pump` and
    /// `run_turns` in `agent_task.rs`).
    ///
    /// # Errors
    /// [`SaveError`] if the journal accepts nothing more from this pump.
    pub(crate) async fn run(mut self) -> Result<(), SaveError> {
        let mut carried = self.carry().await;
        self.release();
        if matches!(carried, Err(SaveError::Refused(StoreError::Full))) {
            carried = self.end_without_room().await;
        }
        if let Err(SaveError::Refused(error)) = &carried {
            self.abort().await;
            if let StoreError::UnknownAgent(_) = error {
                // The agent was purged meanwhile, so nothing needs what is left of the run.
                self.run.leave().await;
            }
        }
        carried
    }

    async fn carry(&mut self) -> Result<(), SaveError> {
        let Waits { mut signals, mut timer } = Waits::new(&self.core, &self.cancel);
        if let Some(reason) = self.first_turn.stop {
            // It was being stopped when the server was restarted.
            self.carry_out(Stop::of(reason)).await;
        }
        let mut had_room = true;
        loop {
            let put_off = if self.in_flight.is_none() { self.put_off() } else { None };
            if self.in_flight.is_none()
                && put_off.is_none()
                && let Some(append) = self.take()
            {
                self.begin_save(append);
            }
            let held_until = self.held_until();
            let paced_until = put_off.into_iter().chain(held_until).min();
            let room = self.has_room();
            if room && !had_room {
                // The pump did not read the output meanwhile, so the agent was not silent.
                self.times.last_output = Instant::now();
            }
            had_room = room;
            let full_disk_pause = self.core.limits.saving.full_disk_pause();
            let deadline = next_deadline(&self.watched(room), &self.core.limits);
            let interruption = tokio::select! {
                // A finished save makes room, and signals and answers must not wait behind the output.
                biased;
                saved = saving(&mut self.in_flight) => {
                    self.after_save(saved?);
                    continue;
                }
                () = self.tail.pace.caught_up(), if paced_until.is_some() => continue,
                () = passed(paced_until), if paced_until.is_some() => continue,
                Some(signal) = signals.next() => Interruption::Signal(signal),
                Some(answering) = self.answers.incoming.recv(), if self.recorder.has_caught_up() => {
                    Interruption::Answer(answering)
                }
                () = passed(self.stopping.again), if self.stopping.again.is_some() => Interruption::AskAgain,
                () = sleep(full_disk_pause), if !room && self.may_free_spool() => Interruption::DiskFull,
                expired = expiry(&mut timer, deadline), if self.stopping.why.is_none() => {
                    Interruption::Expired(expired)
                }
                output = self.run.next(), if room => match output {
                    Ok(RunOutput::Lines(lines)) => {
                        self.lines(lines).await?;
                        continue;
                    }
                    Ok(RunOutput::Progress { offset }) => {
                        self.progress(offset).await;
                        continue;
                    }
                    Ok(RunOutput::Ended(end)) => Interruption::Ended(end),
                    Err(error) => Interruption::Unreadable(error),
                },
            };
            // What follows may take long, and what is saved must not wait for it.
            self.release();
            if self.react(interruption).await? {
                return Ok(());
            }
        }
    }

    async fn lines(&mut self, lines: Vec<OutputLine>) -> Result<(), SaveError> {
        self.times.last_output = Instant::now();
        let now = self.core.now();
        for line in lines {
            if self.stopping.flooded {
                break;
            }
            if self.recorder.line(&line, now) == Recorded::OwnTurn {
                self.begin_own_turns(line.end_offset, now).await?;
            }
            self.enforce_bounds(line.end_offset, now).await;
        }
        self.times.note_result(self.recorder.agent_result().is_some(), Instant::now());
        self.find_known_requests();
        Ok(())
    }

    /// The agent prints a line that has not ended yet: it is not silent, and the line already counts towards
    /// `limits.spool_bytes`.
    async fn progress(&mut self, offset: u64) {
        self.times.last_output = Instant::now();
        if self.core.limits.run.spool_bytes < offset {
            self.flood(Flood::Spool).await;
        }
    }

    /// Stops the run if its output exceeds a limit. Records a notice if many lines display nothing.
    async fn enforce_bounds(&mut self, end_offset: u64, now: Timestamp) {
        let limits = &self.core.limits;
        if limits.run.spool_bytes < end_offset {
            self.flood(Flood::Spool).await;
        } else if limits.run.message_bytes < self.recorder.open_bytes() {
            self.flood(Flood::Messages).await;
        } else if limits.saving.pending_bytes < self.recorder.unshown_bytes() {
            // Lines that display nothing wait for one that does, but not without bound.
            self.recorder.notice(UNSHOWN_OUTPUT, "{}", now);
        }
    }

    /// Waits until the batch in flight is saved, if there is one.
    async fn wait_until_saved(&mut self) -> Result<(), SaveError> {
        let full_disk_pause = self.core.limits.saving.full_disk_pause();
        while self.in_flight.is_some() {
            tokio::select! {
                biased;
                saved = saving(&mut self.in_flight) => {
                    self.after_save(saved?);
                    self.release();
                }
                () = sleep(full_disk_pause), if self.may_free_spool() => {
                    self.free_spool().await;
                }
            }
        }
        Ok(())
    }

    /// Takes the pending events out of the recorder, with the step of the turn (`step`). `None` if there are none: the
    /// step then waits for the next ones.
    fn take(&mut self) -> Option<Append> {
        let step = mem::replace(&mut self.step, TurnStep::Continue);
        if self.recorder.pending_events() == 0 {
            self.step = step;
            return None;
        }
        self.recorder.take(step)
    }

    /// Begins to save everything that was taken from the recorder. No other batch may be in flight.
    ///
    /// The next step is [`Core::save_unless_full`]. When the batch is saved, `carry` calls [`Pump::after_save`], or
    /// `wait_until_saved` does at the end of a turn. It announces the batch (`announce.rs`) or holds it
    /// back (`pace.rs`).
    fn begin_save(&mut self, append: Append) {
        let mark = self.recorder.mark();
        let requests = self.recorder.requests();
        let (mut settled, mut changes) = (requests.take_settled(), requests.take_changes());
        // These three do nothing: they are bugs that only the simulation plants.
        planted::only_if_planted(Bug::ToldBeforeSaved, || self.tell_settled(mem::take(&mut settled)));
        planted::only_if_planted(Bug::NeedsBeforeSaved, || {
            self.answers.open.apply(mem::take(&mut changes));
        });
        planted::only_if_planted(Bug::AnnounceBeforeCommit, || announce(&self.core, &self.tail, &append));
        let (core, full_since) = (Arc::clone(&self.core), Arc::clone(&self.full_disk.since));
        self.in_flight = Some(Box::pin(async move {
            let append = core.save_unless_full(append, &full_since).await?;
            Ok(SavedBatch { append, mark, settled, changes })
        }));
    }

    fn after_save(&mut self, saved: SavedBatch) {
        let SavedBatch { append, mark, settled, changes } = saved;
        let may_wait = settled.is_empty() && changes.is_empty();
        // Before the announcement, which reports the needs together with the status.
        self.update_needs(&append, changes);
        self.announce_or_hold(&append, may_wait);
        self.saved = mark;
        self.tell_settled(settled);
    }

    /// Without `room` the pump does not read, so the agent's silence means nothing.
    fn watched(&self, room: bool) -> Watched {
        let mut activity = self.recorder.parser().activity();
        activity.tool_running |= !room;
        Watched { times: self.times, message_open: self.recorder.has_open_message(), activity }
    }
}

/// Waits until the batch in flight is saved, or has failed. Waits for ever if there is none.
async fn saving(in_flight: &mut Option<InFlight>) -> Result<SavedBatch, SaveError> {
    let saved = match in_flight {
        Some(saving) => saving.await,
        None => std::future::pending().await,
    };
    *in_flight = None;
    saved
}
