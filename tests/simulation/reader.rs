//! A client that reads: live, from history, slowly, with broken connections, and from any cursor.

use std::time::Duration;

use tokenrail_application::{AfterLastTurn, AgentService, Follower, Next, Page, Refusal, StreamEnd};
use tokenrail_domain::{AgentId, Event, Sequence};
use tokenrail_ports::IClock as _;
use tokenrail_presentation::testing::{agent_frames, packed_frames, packed_items};
use tokio::time::sleep;

use crate::bounds;
use crate::dice::Dice;
use crate::packed;
use crate::simulation::LIFE_MAX;
use crate::view::View;
use crate::world::World;

/// How long a client waits before it reconnects.
const AGAIN_MS: u64 = 40;
const POLLS: u64 = 12;
/// How often, per mille, a reader sends an invalid cursor.
const WRONG: u64 = 100;
/// No journal grows by this much during a request.
const AHEAD: u64 = 1_000_000;

/// A client that reads. Its screen survives connections and server restarts.
#[expect(clippy::struct_excessive_bools, reason = "facts that have nothing to do with each other")]
pub(crate) struct Reader {
    pub(crate) slot: usize,
    pub(crate) view: View,
    /// It does not connect before this time.
    pub(crate) from_ms: u64,
    pub(crate) slow_ms: u64,
    pub(crate) disconnect_ms: u64,
    pub(crate) dice: Dice,
    /// Random numbers for invalid cursors.
    wrong: Dice,
    pub(crate) done: bool,
    /// Its agent was deleted.
    pub(crate) gone: bool,
    /// The number and the time of each received event, for tests that compare them.
    pub(crate) came_ms: Vec<(u64, u64)>,
    pub(crate) only_live: bool,
    pub(crate) only_refresh: bool,
    /// It requests packed deltas.
    packed: bool,
    connections: u64,
}

/// Why a connection ended.
enum Cut {
    Ended,
    Deleted,
    Again,
}

impl Reader {
    pub(crate) fn new(world: &World, number: usize) -> Self {
        let mut dice = Dice::of(world.seed, &format!("reader {number}"));
        let faults = &world.faults;
        // The first reader is never slow, so that there is always one to compare with.
        let slow = number != 0 && dice.chance(600);
        Self {
            slot: number % faults.slots,
            view: View::default(),
            from_ms: 0,
            slow_ms: if slow { faults.slow_ms } else { 0 },
            disconnect_ms: faults.disconnect_ms,
            dice,
            wrong: Dice::of(world.seed, &format!("wrong cursors {number}")),
            done: false,
            gone: false,
            came_ms: Vec::new(),
            only_live: false,
            only_refresh: false,
            packed: Dice::of(world.seed, &format!("packed {number}")).chance(500),
            connections: 0,
        }
    }

    /// Reads until nothing more can come, or the server ends.
    pub(crate) async fn read(&mut self, service: &AgentService, world: &World, agents: &Agents) {
        let wait = self.from_ms.saturating_sub(world.now_ms());
        sleep(Duration::from_millis(wait)).await;
        while !self.done {
            let Some(agent) = agents.get(self.slot) else {
                if world.calm.is_cancelled() {
                    self.done = true;
                }
                sleep(Duration::from_millis(AGAIN_MS)).await;
                continue;
            };
            let calm = world.calm.is_cancelled();
            if self.wrong.chance(WRONG) {
                self.ask_wrongly(service, world, agent).await;
            }
            let cut = match self.dice.below(10) {
                0..8 if self.only_refresh => self.refresh(service, world, agent).await,
                0..2 if !self.only_live => self.poll(service, world, agent).await,
                2 if !self.only_live => self.refresh(service, world, agent).await,
                _ => self.follow(service, world, agent, calm).await,
            };
            match cut {
                Cut::Ended if calm => self.done = true,
                Cut::Deleted => (self.done, self.gone) = (true, true),
                Cut::Ended | Cut::Again => sleep(Duration::from_millis(AGAIN_MS)).await,
            }
        }
    }

    async fn follow(&mut self, service: &AgentService, world: &World, agent: AgentId, calm: bool) -> Cut {
        let waits = !calm && self.dice.chance(500);
        let after_last_turn = if waits { AfterLastTurn::Wait } else { AfterLastTurn::End };
        // A client may also have forgotten the newest part of what it has seen.
        let back = if self.dice.chance(150) { self.dice.below(self.view.last + 1) } else { 0 };
        let since = self.view.last - back;
        let mut follower = match service.follow(agent, Some(Sequence(since)), after_last_turn).await {
            Ok((_, follower)) => follower,
            Err(refusal) => return refused(world, &refusal, since),
        };
        let patience = if 0 < self.disconnect_ms && !calm {
            // Each connection lasts longer, or agents that hang would be followed ten thousand times.
            self.connections += 1;
            Duration::from_millis(self.dice.between(1, self.disconnect_ms) * (1 + self.connections / 10))
        } else {
            // Longer than any simulation: without a wake-up, a reader must not find new events by chance.
            LIFE_MAX * 2
        };
        tokio::select! {
            biased;
            () = world.calm.cancelled(), if !calm => Cut::Again,
            () = sleep(patience) => {
                world.reach("a reader was disconnected");
                Cut::Again
            }
            cut = self.listen(&mut follower, since, world, agent) => cut,
        }
    }

    async fn listen(&mut self, follower: &mut Follower, since: u64, world: &World, agent: AgentId) -> Cut {
        let mut last = since;
        loop {
            let asked = world.now();
            // One that is behind may first wait for what others read from the store.
            let keeps_up = follower.cursor() == follower.head();
            match follower.next().await {
                Ok(Next::Page(page)) => {
                    // An agent that is being stopped, or whose node is, puts everything off.
                    if keeps_up && !world.is_stopped(agent) && world.node.is_none() {
                        world.check(bounds::shown(page.events(), asked, world.now(), &world.faults));
                    }
                    world.check(go_on(&mut last, page.events()));
                    self.take(world, agent, &page);
                    if 0 < self.slow_ms && !world.calm.is_cancelled() {
                        sleep(Duration::from_millis(self.dice.below(self.slow_ms))).await;
                    }
                }
                Ok(Next::End(StreamEnd::AgentEnded)) => {
                    world.check(has_everything(world, agent, follower.cursor().0));
                    return Cut::Ended;
                }
                Ok(Next::End(StreamEnd::AgentDeleted)) => return Cut::Deleted,
                Ok(Next::End(StreamEnd::ShuttingDown)) => {
                    world.reach("a reader was told of the shutdown");
                    return Cut::Again;
                }
                Err(error) => {
                    if error.is_transient() {
                        world.reach("history could not be read");
                    } else if world.disk.saved_agent(agent).is_none() {
                        return Cut::Deleted;
                    } else {
                        world.fail(format!("a follower got: {error}"));
                    }
                    sleep(Duration::from_millis(AGAIN_MS)).await;
                }
            }
        }
    }

    fn take(&mut self, world: &World, agent: AgentId, page: &Page) {
        let now = world.now_ms();
        world.check(bounds::page(page.batch.events().len(), &world.faults.limits));
        world.check(shown(world, agent, page));
        if self.packed {
            // The screen shows what the frames contain, and not the events that they were made of.
            match packed::events(agent, page.events(), &packed_frames(agent, page)) {
                Ok(events) => events.iter().for_each(|event| self.show(world, event, now)),
                Err(wrong) => world.fail(wrong),
            }
        } else {
            page.events().iter().for_each(|event| self.show(world, event, now));
        }
    }

    fn show(&mut self, world: &World, event: &Event, now: u64) {
        world.check(self.view.live(event));
        self.came_ms.push((event.sequence.0, now));
    }

    /// Sends a cursor that the journal has not reached, as after the restore of a backup. The server must refuse it: an
    /// empty answer would look like the end of the journal.
    async fn ask_wrongly(&mut self, service: &AgentService, world: &World, agent: AgentId) {
        let before = world.disk.saved_agent(agent).map_or(0, |agent| agent.head.0);
        let ahead = Sequence(before + AHEAD);
        let told = match self.wrong.below(3) {
            0 => service.follow(agent, Some(ahead), AfterLastTurn::Wait).await.err(),
            1 => service.events(agent, ahead, None).await.err(),
            _ => service.messages(agent, ahead, None).await.err(),
        };
        let after = world.disk.saved_agent(agent).map_or(u64::MAX, |agent| agent.head.0);
        match told {
            None => world.fail(format!("G5: a cursor at {ahead} was taken, and the newest event is {after}")),
            Some(Refusal::CursorAhead { head }) if !(before..=after).contains(&head.0) => {
                world.fail(format!("G5: the head was told to be {head}, and is {before} to {after}"));
            }
            Some(Refusal::CursorAhead { .. }) => world.reach("a cursor ahead was refused"),
            Some(_) => {}
        }
    }

    /// Requests pages of the history.
    async fn poll(&mut self, service: &AgentService, world: &World, agent: AgentId) -> Cut {
        for _ in 0..self.dice.between(1, POLLS) {
            let since = Sequence(self.view.last);
            if self.dice.chance(500) {
                match service.messages(agent, since, None).await {
                    Ok(page) => {
                        world.check(is_on_disk(world, agent, &page.events));
                        self.view.page(&page);
                    }
                    Err(refusal) => return refused(world, &refusal, since.0),
                }
            } else {
                match service.events(agent, since, None).await {
                    Ok((events, _)) => {
                        world.check(is_on_disk(world, agent, &events));
                        world.check(go_on(&mut { since.0 }, &events));
                        let told = if self.packed {
                            packed::items(agent, &events, &packed_items(agent, &events))
                        } else {
                            Ok(events)
                        };
                        let live =
                            told.and_then(|told| told.iter().try_for_each(|event| self.view.live(event)));
                        world.check(live);
                    }
                    Err(refusal) => return refused(world, &refusal, since.0),
                }
            }
        }
        Cut::Again
    }

    /// Reloads everything, as a browser does.
    async fn refresh(&mut self, service: &AgentService, world: &World, agent: AgentId) -> Cut {
        let mut fresh = View::default();
        loop {
            let since = Sequence(fresh.last);
            match service.messages(agent, since, None).await {
                Ok(page) => {
                    world.check(is_on_disk(world, agent, &page.events));
                    fresh.page(&page);
                    if page.head <= page.up_to {
                        break;
                    }
                }
                Err(refusal) => return refused(world, &refusal, since.0),
            }
        }
        if self.view.last <= fresh.last {
            self.view = fresh;
        }
        Cut::Again
    }
}

/// Within one connection, each event comes once and in order: the client has nothing to drop.
fn go_on(last: &mut u64, events: &[Event]) -> Result<(), String> {
    for event in events {
        let number = event.sequence.0;
        if number != *last + 1 {
            return Err(format!("G2: after {last} came {number}, on one connection"));
        }
        *last = number;
    }
    Ok(())
}

/// The launched agents, by slot.
#[derive(Debug, Default)]
pub(crate) struct Agents(std::sync::Mutex<Vec<Option<AgentId>>>);

impl Agents {
    pub(crate) fn new(slots: usize) -> Self {
        Self(std::sync::Mutex::new(vec![None; slots]))
    }

    pub(crate) fn get(&self, slot: usize) -> Option<AgentId> {
        self.0.lock().unwrap()[slot]
    }

    pub(crate) fn known(&self) -> Vec<AgentId> {
        self.0.lock().unwrap().iter().flatten().copied().collect()
    }

    pub(crate) fn set(&self, slot: usize, agent: AgentId) {
        self.0.lock().unwrap()[slot] = Some(agent);
    }
}

fn refused(world: &World, refusal: &Refusal, since: u64) -> Cut {
    match refusal {
        Refusal::NotFound(_) | Refusal::Store(tokenrail_application::StoreError::UnknownAgent(_)) => {
            Cut::Deleted
        }
        Refusal::CursorAhead { head } => {
            world.fail(format!("G1: a client has seen {since}, and the newest event is {head}"));
            Cut::Again
        }
        _ => Cut::Again,
    }
}

/// Checks that the shown events are on the disk, and that every client gets the same bytes.
fn shown(world: &World, agent: AgentId, page: &Page) -> Result<(), String> {
    is_on_disk(world, agent, page.events())?;
    let frames = agent_frames(agent, page);
    if frames.len() != page.events().len() {
        return Err(format!("G8: {} events have {} frames", page.events().len(), frames.len()));
    }
    let mut state = world.lock();
    for (event, frames) in page.events().iter().zip(frames) {
        let first = state.frames.entry((agent, event.sequence.0)).or_insert_with(|| frames.clone());
        if *first != frames {
            return Err(format!("G8: event {} was written in two ways", event.sequence));
        }
    }
    let last = page.events().last().map_or(0, |event| event.sequence.0);
    state.note("shown", last, 0);
    Ok(())
}

fn is_on_disk(world: &World, agent: AgentId, events: &[Event]) -> Result<(), String> {
    let Some(last) = events.last() else { return Ok(()) };
    let known = |world: &World| world.lock().ledgers.get(&agent).map_or(0, |ledger| ledger.events.len());
    if known(world) < last.sequence.0 as usize {
        world.sync(agent);
    }
    let state = world.lock();
    let ledger = state.ledgers.get(&agent);
    for event in events {
        let number = event.sequence.0 as usize;
        match ledger.and_then(|ledger| ledger.events.get(number.wrapping_sub(1))) {
            Some(saved) if saved == event => {}
            Some(_) => return Err(format!("G3: event {number} is shown as it was not saved")),
            None => return Err(format!("G1: event {number} is shown and not saved")),
        }
    }
    Ok(())
}

/// Checks that a reader that was told that it has everything has it.
fn has_everything(world: &World, agent: AgentId, cursor: u64) -> Result<(), String> {
    // The agent was purged meanwhile.
    let Some(saved) = world.disk.saved_agent(agent).map(|agent| agent.head.0) else { return Ok(()) };
    if cursor == saved {
        Ok(())
    } else {
        Err(format!("G6: a reader at {cursor} was told that it has everything, and there are {saved}"))
    }
}
