//! Replays another agent's journal: its events one by one, each when it is due.

use std::sync::Arc;
use std::time::Duration;

use tokenrail_domain::{
    AgentError, ErrorClass, Event, EventBody, Replay, Sequence, Timestamp, Turn, TurnNumber, TurnState,
};
use tokenrail_ports::{Append, StoreError, TurnStep};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::AgentTask;
use super::resume::SoFar;
use crate::announce::save_and_announce;
use crate::core::SaveError;
use crate::recorder::Recorder;
use crate::verdict::Verdict;

/// A replay in progress. Its events have the sequence numbers of the original, so the newest number is its position.
struct Player<'a> {
    task: &'a AgentTask,
    replay: Replay,
    recorder: Recorder,
    cancel: CancellationToken,
    /// The turn that starts with the next event.
    start: Option<Turn>,
    /// The end of a turn, to be saved together with the start of the next turn. So until the replay is over, the
    /// agent has an open turn, and the next start of the server continues it.
    held: Vec<Append>,
    /// The time of an event in the original, and the instant at which it was played. The time between two turns is
    /// left out.
    anchor: Option<(Timestamp, Instant)>,
}

/// The progress of a replay.
enum Played {
    More,
    /// The last event has been played, or the replay was stopped.
    Over,
}

impl AgentTask {
    /// Continues the replay after the newest event of the journal.
    pub(super) async fn play(&self, replay: Replay) -> Result<(), SaveError> {
        let cancel = self.handle.open_channels().cancel;
        let played = self.play_on(replay, cancel).await;
        self.handle.close_channels();
        played
    }

    async fn play_on(&self, replay: Replay, cancel: CancellationToken) -> Result<(), SaveError> {
        // Read only now: a cancel from before `TaskHandle::open_channels` is only in the store.
        let Some(turn) = self.first_open_turn().await? else { return Ok(()) };
        let Some(agent) = self.agent_row().await? else { return Ok(()) };
        let waits = turn.state == TurnState::Queued;
        if waits && turn.stop.is_some() {
            return self.end_unstarted(turn, Verdict::cancelled()).await;
        }
        let now = self.core.now();
        let so_far = if waits { SoFar::nothing(now) } else { self.so_far(&turn).await? };
        if turn.stop.is_some() {
            cancel.cancel();
        }
        let recorder = self.recorder(&agent, &turn, so_far).await?;
        let start = waits.then_some(turn);
        let mut player =
            Player { task: self, replay, recorder, cancel, start, held: Vec::new(), anchor: None };
        player.find_anchor().await?;
        while let Played::More = player.page().await? {}
        Ok(())
    }
}

impl Player<'_> {
    /// In the middle of a turn, the time continues from the last event that was played.
    async fn find_anchor(&mut self) -> Result<(), SaveError> {
        let Some(before) = self.recorder.next_sequence().0.checked_sub(2) else { return Ok(()) };
        if self.start.is_none() {
            let events = self.read(Sequence(before)).await?;
            self.anchor = events.first().map(|event| (event.at, Instant::now()));
        }
        Ok(())
    }

    /// Plays one page of events.
    async fn page(&mut self) -> Result<Played, SaveError> {
        let next = self.recorder.next_sequence();
        let events = self.read(next.before()).await?;
        if events.first().is_none_or(|first| first.sequence != next) {
            return self.end(Verdict::failed(original_gone())).await;
        }
        for event in &events {
            if !self.wait_for(event).await? {
                let verdict = self.task.stopped(&self.cancel);
                return self.end(verdict).await;
            }
            let over = self.take(event).await?;
            if over {
                return Ok(Played::Over);
            }
        }
        if self.start.is_none() {
            self.save(TurnStep::Continue).await?;
        }
        Ok(Played::More)
    }

    /// Waits until the event is due. Events that are due already are saved before the wait. Returns false if the
    /// replay was stopped.
    async fn wait_for(&mut self, event: &Event) -> Result<bool, SaveError> {
        let (core, cancel) = (Arc::clone(&self.task.core), self.cancel.clone());
        let (from, since) = *self.anchor.get_or_insert_with(|| (event.at, Instant::now()));
        let due = since.checked_add(self.paced(event.at.ms_since(from)));
        let limits = &core.limits;
        let full = limits.saving.pending_events <= self.recorder.pending_events()
            || limits.saving.pending_bytes <= self.recorder.pending_bytes();
        let early = due.is_none_or(|due| Instant::now() < due);
        if (full || early) && self.start.is_none() {
            self.save(TurnStep::Continue).await?;
        }
        tokio::select! {
            biased;
            () = core.closing.cancelled() => Err(SaveError::Closing),
            // Before a turn has started there is nothing to end: its start comes first.
            () = cancel.cancelled(), if self.start.is_none() => Ok(false),
            () = core.draining.cancelled(), if self.start.is_none() => Ok(false),
            () = wait_until(due), if early => Ok(true),
            () = std::future::ready(()), if !early => Ok(true),
        }
    }

    fn paced(&self, ms: u64) -> Duration {
        if self.replay.speed <= 0.0 {
            return Duration::ZERO;
        }
        Duration::try_from_secs_f64(ms as f64 / 1000.0 / self.replay.speed).unwrap_or(Duration::MAX)
    }

    /// Plays one event. Returns true if it was the last.
    async fn take(&mut self, event: &Event) -> Result<bool, SaveError> {
        let now = self.task.core.now();
        self.recorder.copy(event, now);
        if let Some(turn) = self.start.take() {
            let turn = Turn { first_sequence: Some(event.sequence), ..turn };
            self.save(TurnStep::Start(Box::new(turn))).await?;
        }
        if !matches!(event.body, EventBody::TurnResult(_)) {
            return Ok(false);
        }
        if self.replay.until <= event.sequence {
            self.save(TurnStep::End).await?;
            return Ok(true);
        }
        self.held.extend(self.recorder.take(TurnStep::End));
        self.start = Some(self.next_turn(event.sequence.next(), now).await?);
        self.anchor = None;
        Ok(false)
    }

    /// The turn that begins with the event `first` of the original.
    async fn next_turn(&mut self, first: Sequence, now: Timestamp) -> Result<Turn, SaveError> {
        let agents = &self.task.core.outside.agents;
        let of = self.replay.of;
        let original = self.task.patiently(|| agents.turn_at(of, first)).await?;
        let number = original.as_ref().map_or(TurnNumber::FIRST, |turn| turn.number);
        let _ = self.recorder.begin_own_turn(number, 0, now);
        let (run, prompt, images) = match original {
            Some(Turn { run, prompt, images, .. }) => (run, prompt, images),
            None => (number, String::new(), Vec::new()),
        };
        Ok(Turn {
            agent: self.task.agent,
            number,
            run,
            prompt,
            images,
            state: TurnState::Running,
            asked_at: now,
            first_sequence: Some(first),
            last_sequence: None,
            spool_offset: 0,
            stop: None,
            base: None,
        })
    }

    /// Saves the pending events, and the ones that were held back for them.
    async fn save(&mut self, step: TurnStep) -> Result<(), SaveError> {
        self.held.extend(self.recorder.take(step));
        if let Some(append) = Append::chain(std::mem::take(&mut self.held)) {
            save_and_announce(&self.task.core, &self.task.tail, append).await?;
        }
        Ok(())
    }

    /// Ends the replay early.
    async fn end(&mut self, verdict: Verdict) -> Result<Played, SaveError> {
        if self.start.is_some() && !self.held.is_empty() {
            // Between two turns, no turn is open. Only the end of the last one must be saved.
            self.recorder.take(TurnStep::Continue);
            self.save(TurnStep::Continue).await?;
            return Ok(Played::Over);
        }
        if let Some(turn) = self.start.take() {
            let mut turn = turn;
            self.held.extend(self.task.user_message(&mut self.recorder, &mut turn));
        }
        self.recorder.conclude(verdict, self.task.core.now());
        self.save(TurnStep::End).await?;
        Ok(Played::Over)
    }

    /// The next events of the original. Empty if the original was purged.
    async fn read(&mut self, after: Sequence) -> Result<Vec<Event>, SaveError> {
        let core = &self.task.core;
        let (of, limit) = (self.replay.of, core.limits.reading.history());
        match self.task.patiently(|| core.outside.journal.read(of, after, limit)).await {
            Err(SaveError::Refused(StoreError::UnknownAgent(_))) => Ok(Vec::new()),
            read => read,
        }
    }
}

async fn wait_until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

fn original_gone() -> AgentError {
    let text = "the agent whose history is being replayed was purged";
    AgentError::new(ErrorClass::Unknown, Some("replay_original_gone"), text)
}
