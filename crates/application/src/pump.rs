//! One run of an agent: reads its output, commits it, and announces what is committed.

mod answers;
mod full_disk;
mod own_turns;
mod stop;
mod waits;

use std::mem;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::StreamExt as _;
use tokenrail_domain::{AgentId, EventBody, Timestamp, Turn};
use tokenrail_ports::{Append, IAgentRun, OutputLine, RunEnd, RunOutput, StoreError, TurnStep};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use self::answers::{Answers, RequestsOfRun};
use self::full_disk::FullDisk;
use self::stop::{Stopping, due};
use self::waits::{Signal, Waits, expiry};
use crate::announce::announce;
use crate::core::{Control, Core, SaveError, TurnChannels};
use crate::planted::{self, Bug};
use crate::recorder::{Mark, Recorded, Recorder};
use crate::tails::Tail;
use crate::timers::{TurnTimes, Watched, next_deadline};
use crate::verdict::{Flood, Stop, is_storage_full, verdict};

/// Carries one run of an agent into its journal. While one batch is being committed, the next one is read and parsed.
/// So a batch is as small as one line if the agent prints little, and as large as the limits allow in a flood.
pub(crate) struct Pump {
    pub(crate) core: Arc<Core>,
    pub(crate) control: Arc<Control>,
    pub(crate) agent: AgentId,
    pub(crate) tail: Arc<Tail>,
    pub(crate) recorder: Recorder,
    pub(crate) run: Box<dyn IAgentRun>,
    /// The turn that began this run.
    pub(crate) turn: Turn,
    pub(crate) cancel: CancellationToken,
    answers: Answers,
    stopping: Stopping,
    full_disk: FullDisk,
    saved: Saved,
    /// What the next append does to the turn.
    step: TurnStep,
    /// How the run ended. `None` until it has ended.
    ended: Option<RunEnd>,
    times: TurnTimes,
}

/// How much of this run is in the journal.
struct Saved {
    mark: Mark,
    /// Where the mark moves when the batch that is being saved is committed.
    next_mark: Option<Mark>,
}

/// What a pump is built from.
pub(crate) struct PumpStart {
    pub(crate) core: Arc<Core>,
    pub(crate) control: Arc<Control>,
    pub(crate) tail: Arc<Tail>,
    pub(crate) recorder: Recorder,
    pub(crate) run: Box<dyn IAgentRun>,
    pub(crate) turn: Turn,
    pub(crate) channels: TurnChannels,
    /// How long the turn had run before the server was restarted.
    pub(crate) ran_ms: u64,
}

type InFlight = Pin<Box<dyn Future<Output = Result<Append, SaveError>> + Send>>;

impl Pump {
    pub(crate) fn new(start: PumpStart) -> Self {
        let PumpStart { core, control, tail, recorder, run, turn, channels, ran_ms } = start;
        let TurnChannels { cancel, answers } = channels;
        let answers = Answers::new(answers, RequestsOfRun { core: Arc::clone(&core), agent: turn.agent });
        let now = Instant::now();
        let ran = std::time::Duration::from_millis(ran_ms).min(core.limits.run.turn_timeout);
        Self {
            core,
            control,
            agent: turn.agent,
            tail,
            saved: Saved { mark: recorder.mark(), next_mark: None },
            recorder,
            run,
            turn,
            cancel,
            answers,
            stopping: Stopping::default(),
            full_disk: FullDisk::default(),
            step: TurnStep::Continue,
            ended: None,
            times: TurnTimes { started: now.checked_sub(ran).unwrap_or(now), last_output: now, closed: None },
        }
    }

    /// Runs until the agent has ended and all its output is in the journal.
    ///
    /// # Errors
    /// [`SaveError`] if the journal accepts nothing more from this pump.
    pub(crate) async fn run(mut self) -> Result<(), SaveError> {
        let mut carried = self.carry().await;
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
        let mut in_flight: Option<InFlight> = None;
        let Waits { mut signals, mut timer } = Waits::new(&self.core, &self.cancel);
        if let Some(reason) = self.turn.stop {
            // It was being stopped when the server was restarted.
            self.carry_out(Stop::of(reason)).await;
        }
        loop {
            let put_off = if in_flight.is_none() { self.put_off() } else { None };
            if in_flight.is_none() && put_off.is_none() {
                in_flight = self.take().map(|append| self.begin_save(append));
            }
            let room = self.has_room();
            let full_disk_pause = self.core.limits.saving.full_disk_pause();
            let deadline = next_deadline(&self.watched(room), &self.core.limits);
            tokio::select! {
                biased;
                saved = saving(&mut in_flight) => {
                    in_flight = None;
                    self.saved(&saved?);
                    if !room {
                        // The pump did not read the output meanwhile, so the agent was not silent.
                        self.times.last_output = Instant::now();
                    }
                }
                () = self.tail.audience.caught_up(), if put_off.is_some() => {}
                () = due(put_off), if put_off.is_some() => {}
                Some(signal) = signals.next() => match signal {
                    Signal::Close => return Err(SaveError::Closing),
                    Signal::Stop if self.stopping.why.is_none() => self.stop_as_told().await,
                    Signal::Stop => {}
                },
                Some(answering) = self.answers.incoming.recv(), if self.recorder.has_caught_up() => {
                    self.answer(answering).await;
                }
                () = due(self.stopping.again), if self.stopping.again.is_some() => self.ask_to_stop().await,
                () = sleep(full_disk_pause), if !room && self.may_give_back() => {
                    self.give_back().await;
                }
                expired = expiry(&mut timer, deadline), if self.stopping.why.is_none() => self.stop(Stop::Expired(expired)).await,
                output = self.run.next(), if room => match output {
                    Ok(RunOutput::Lines(lines)) => self.lines(lines, &mut in_flight).await?,
                    Ok(RunOutput::Progress { offset }) => self.progress(offset).await,
                    Ok(RunOutput::Ended(end)) => return self.finish(end, in_flight).await,
                    Err(error) => {
                        // An agent whose output can no longer be read must not keep running unseen.
                        self.abort().await;
                        let end = RunEnd { error: Some(error.to_agent_error()), ..RunEnd::default() };
                        return self.finish(end, in_flight).await;
                    }
                },
            }
        }
    }

    async fn lines(
        &mut self,
        lines: Vec<OutputLine>,
        in_flight: &mut Option<InFlight>,
    ) -> Result<(), SaveError> {
        self.times.last_output = Instant::now();
        let now = self.core.now();
        for line in lines {
            if self.stopping.flooded {
                break;
            }
            if self.recorder.line(&line, now) == Recorded::OwnTurn {
                self.begin_own_turns(line.end_offset, in_flight, now).await?;
            }
            self.check_bounds(line.end_offset, now).await;
        }
        self.times.note_closed(self.recorder.close().is_some());
        self.find_known_questions();
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

    async fn check_bounds(&mut self, end_offset: u64, now: Timestamp) {
        let limits = &self.core.limits;
        if limits.run.spool_bytes < end_offset {
            self.flood(Flood::Spool).await;
        } else if limits.run.message_bytes < self.recorder.open_bytes() {
            self.flood(Flood::Messages).await;
        } else if limits.saving.pending_bytes < self.recorder.unshown_bytes() {
            // Lines that display nothing wait for one that does, but not without bound.
            self.recorder.notice("unshown_output", "{}", now);
        }
    }

    /// The agent has ended: saves the rest, with the result as the last event.
    async fn finish(&mut self, end: RunEnd, in_flight: Option<InFlight>) -> Result<(), SaveError> {
        let must_go = end.rests && self.is_stopping();
        self.ended = (!must_go).then(|| end.clone());
        // Saved before the wait for an idle process, so that readers see the output without delay.
        self.flush(in_flight).await?;
        let end = if must_go { self.until_gone().await } else { end };
        self.ended = Some(end.clone());
        let now = self.core.now();
        if self.stopping.why.is_none() && end.disk_full.is_none() {
            // The exit code means nothing if the agent was stopped or its output may be cut.
            self.recorder.output_ended(end.status, now);
        }
        if 0 < end.reaped || matches!(self.stopping.why, Some(Stop::Cancelled)) {
            let data = format!("{{\"processes\":{}}}", end.reaped);
            self.recorder.notice("reaped", &data, now);
        }
        let has_result = self.recorder.close().is_some();
        let is_cancelled = matches!(self.stopping.why, Some(Stop::Cancelled));
        if let Some(error) = &end.error
            && (has_result || is_cancelled && is_storage_full(error))
        {
            // The agent's result or the cancel decides the outcome. The error is recorded beside it.
            self.recorder.note(EventBody::Error(Box::new(error.clone())), now);
        }
        let verdict = verdict(self.recorder.close(), self.stopping.why, &end, &self.core.limits)
            .classed(|| self.recorder.parser().complaint(&end.stderr));
        self.recorder.conclude(verdict, now);
        self.step = TurnStep::End;
        self.flush(None).await?;
        self.leave(&end).await;
        Ok(())
    }

    /// Waits until everything that is recorded is saved.
    async fn flush(&mut self, in_flight: Option<InFlight>) -> Result<(), SaveError> {
        if let Some(in_flight) = in_flight {
            self.wait_until_saved(in_flight).await?;
        }
        if let Some(append) = self.take() {
            let saving = self.begin_save(append);
            self.wait_until_saved(saving).await?;
        }
        Ok(())
    }

    async fn wait_until_saved(&mut self, mut in_flight: InFlight) -> Result<(), SaveError> {
        let full_disk_pause = self.core.limits.saving.full_disk_pause();
        loop {
            tokio::select! {
                biased;
                saved = &mut in_flight => {
                    self.saved(&saved?);
                    return Ok(());
                }
                () = sleep(full_disk_pause), if self.may_give_back() => {
                    self.give_back().await;
                }
            }
        }
    }

    fn take(&mut self) -> Option<Append> {
        let step = mem::replace(&mut self.step, TurnStep::Continue);
        if self.recorder.pending_events() == 0 {
            self.step = step;
            return None;
        }
        let taken = self.recorder.take(step);
        self.note_taken();
        taken
    }

    /// Notes what to report once everything that was taken is saved.
    fn note_taken(&mut self) {
        self.saved.next_mark = Some(self.recorder.mark());
        let questions = self.recorder.questions();
        self.answers.settled.extend(questions.take_settled());
        self.answers.changes.extend(questions.take_changes());
        planted::too_early(Bug::ToldBeforeSaved, || self.tell_settled());
        planted::too_early(Bug::NeedsBeforeSaved, || self.tell_needs_too_early());
    }

    fn begin_save(&self, append: Append) -> InFlight {
        planted::too_early(Bug::AnnounceBeforeCommit, || announce(&self.core, &self.tail, &append));
        let (core, full_since) = (Arc::clone(&self.core), Arc::clone(&self.full_disk.since));
        Box::pin(async move { core.save_unless_full(append, &full_since).await })
    }

    fn saved(&mut self, append: &Append) {
        // Before the announcement, which reports the needs together with the status.
        self.update_needs(append);
        announce(&self.core, &self.tail, append);
        if let Some(mark) = self.saved.next_mark.take() {
            self.saved.mark = mark;
        }
        self.tell_settled();
    }

    fn has_room(&self) -> bool {
        let limits = &self.core.limits;
        self.recorder.pending_events() < limits.saving.pending_events
            && self.recorder.pending_bytes() < limits.saving.pending_bytes
    }

    /// Without `room` the pump does not read, so the agent's silence means nothing.
    fn watched(&self, room: bool) -> Watched {
        let mut activity = self.recorder.parser().activity();
        activity.tool_running |= !room;
        Watched { times: self.times, message_open: self.recorder.has_open_message(), activity }
    }
}

async fn saving(in_flight: &mut Option<InFlight>) -> Result<Append, SaveError> {
    match in_flight {
        Some(saving) => saving.await,
        None => std::future::pending().await,
    }
}
