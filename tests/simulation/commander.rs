//! A client that sends commands: it launches an agent, sends it messages, cancels, and repeats itself.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokenrail_application::{AgentService, CommandKey, Deletion, Launch, Refusal};
use tokenrail_domain::{AgentId, TurnNumber, TurnState};
use tokio::time::{Instant, sleep};

use crate::bounds;
use crate::dice::Dice;
use crate::reader::Agents;
use crate::world::World;

const AGAIN_MS: u64 = 120;
const TRIES: usize = 400;
/// How long to wait for the end of a turn.
const UNTIL_ENDED_MS: u64 = 30_000;
/// How often, per mille, a message is sent at the moment a turn ends.
const AT_THE_END: u64 = 400;
/// How often, per mille, the clock jumps before a message is repeated, if the seed has clock jumps.
const JUMP_BEFORE_REPEAT: u64 = 300;
/// How often, per mille, a message is withdrawn after it was sent.
const WITHDRAW: u64 = 150;
/// The first number of these messages.
const OF_THE_END: u64 = 100;

/// One command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    Launch,
    /// The same launch again.
    LaunchAgain,
    Send(u64),
    SendAgain(u64),
    Cancel,
    /// Withdraws the turn of the newest message, whether or not it still waits.
    Withdraw,
    Delete {
        purge: bool,
    },
    JumpClock(i64),
    Wait(u64),
    /// Waits until the end of a turn is saved, so that the next command meets a task that is ending.
    UntilEnded,
}

/// A client that sends commands. Its plan survives connections and server restarts.
#[expect(clippy::struct_excessive_bools, reason = "facts that have nothing to do with each other")]
pub(crate) struct Commander {
    pub(crate) slot: usize,
    plan: Vec<Deed>,
    next: usize,
    /// The turn of each accepted message.
    pub(crate) sent: BTreeMap<u64, TurnNumber>,
    pub(crate) cancels: Vec<CancelAck>,
    /// The turns that were withdrawn, or perhaps.
    pub(crate) withdrawn: BTreeSet<TurnNumber>,
    pub(crate) cancelled: bool,
    pub(crate) deleted: bool,
    pub(crate) purged: bool,
    pub(crate) launched: bool,
    pub(crate) refused: bool,
    /// The agent is cancelled when its last follower disconnects.
    pub(crate) bound: bool,
}

/// A cancel that was accepted.
#[derive(Debug)]
pub(crate) struct CancelAck {
    /// The turns that were open when the cancel was sent, in their state when it was accepted.
    pub(crate) open: Vec<(TurnNumber, TurnState)>,
    pub(crate) acknowledged_ms: u64,
    /// Only one turn was withdrawn. It ends after the turns before it, whenever that is.
    pub(crate) is_withdrawal: bool,
}

impl CancelAck {
    fn of(world: &World, agent: AgentId, open: &[TurnNumber]) -> Self {
        let turns = world.disk.saved_turns(agent);
        let open = turns.iter().filter(|turn| open.contains(&turn.number));
        let open: Vec<_> = open.map(|turn| (turn.number, turn.state)).collect();
        for (_, state) in &open {
            match state {
                TurnState::Queued => world.reach("a queued turn was cancelled"),
                TurnState::Running => world.reach("a running turn was cancelled"),
                TurnState::Ended(_) => {}
            }
        }
        Self { open, acknowledged_ms: world.now_ms(), is_withdrawal: false }
    }
}

impl Commander {
    pub(crate) fn new(world: &World, slot: usize) -> Self {
        let dice = &mut Dice::of(world.seed, &format!("commander {slot}"));
        let bound = dice.chance(world.faults.bound);
        Self::with_plan(slot, plan(world, dice), bound)
    }

    pub(crate) fn with_plan(slot: usize, plan: Vec<Deed>, bound: bool) -> Self {
        Self {
            slot,
            plan,
            next: 0,
            sent: BTreeMap::new(),
            cancels: Vec::new(),
            withdrawn: BTreeSet::new(),
            cancelled: false,
            deleted: false,
            purged: false,
            launched: false,
            refused: false,
            bound,
        }
    }

    pub(crate) fn prompt(&self) -> String {
        format!("launch {}", self.slot)
    }

    pub(crate) fn content(&self, number: u64) -> String {
        format!("message {} to {}", number, self.slot)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.next == self.plan.len()
    }

    /// Continues with the plan. A command that failed is sent again, with the same key.
    pub(crate) async fn command(&mut self, service: &AgentService, world: &World, agents: &Agents) {
        while let Some(deed) = self.plan.get(self.next).copied() {
            for _ in 0..TRIES {
                match self.try_one(deed, service, world, agents).await {
                    Ok(()) => break,
                    Err(refusal) if is_final(&refusal) => {
                        self.refused |= deed == Deed::Launch;
                        break;
                    }
                    Err(_) => {
                        world.reach("a command was given again");
                        sleep(Duration::from_millis(AGAIN_MS)).await;
                    }
                }
            }
            self.next += 1;
        }
    }

    async fn try_one(
        &mut self,
        deed: Deed,
        service: &AgentService,
        world: &World,
        agents: &Agents,
    ) -> Result<(), Refusal> {
        match deed {
            Deed::Launch | Deed::LaunchAgain => return self.launch(service, world, agents).await,
            Deed::Wait(ms) => sleep(Duration::from_millis(ms)).await,
            Deed::UntilEnded => self.until_ended(world, agents).await,
            Deed::JumpClock(ms) => world.jump_clock(ms),
            Deed::Send(number) | Deed::SendAgain(number) => {
                let Some(agent) = agents.get(self.slot) else { return Ok(()) };
                return self.send(agent, number, service, world).await;
            }
            Deed::Cancel => {
                let Some(agent) = agents.get(self.slot) else { return Ok(()) };
                self.cancelled = true;
                let open = open_turns(world, agent);
                let began = Instant::now();
                let told = service.cancel(agent).await;
                world.check(bounds::command(
                    began.elapsed(),
                    world.faults.limits.commands.command_timeout,
                    &world.faults,
                ));
                told?;
                self.cancels.push(CancelAck::of(world, agent, &open));
            }
            Deed::Withdraw => {
                let Some(agent) = agents.get(self.slot) else { return Ok(()) };
                return self.withdraw(agent, service, world).await;
            }
            Deed::Delete { purge } => {
                let Some(agent) = agents.get(self.slot) else { return Ok(()) };
                (self.cancelled, self.deleted) = (true, true);
                self.purged |= purge;
                let began = Instant::now();
                let deletion = if purge { Deletion::Purge } else { Deletion::KeepHistory };
                let told = service.delete(agent, deletion).await;
                let limits = &world.faults.limits;
                let bound = limits.commands.command_timeout + limits.commands.shutdown_timeout;
                world.check(bounds::command(began.elapsed(), bound, &world.faults));
                told?;
            }
        }
        Ok(())
    }

    async fn withdraw(
        &mut self,
        agent: AgentId,
        service: &AgentService,
        world: &World,
    ) -> Result<(), Refusal> {
        let Some(turn) = self.sent.values().max().copied() else { return Ok(()) };
        let began = Instant::now();
        // Noted first, because the server may be killed after it has saved the withdrawal.
        let is_first = self.withdrawn.insert(turn);
        let told = service.withdraw_turn(agent, turn).await;
        world.check(bounds::command(
            began.elapsed(),
            world.faults.limits.commands.command_timeout,
            &world.faults,
        ));
        if is_first && told.as_ref().is_err_and(is_final) {
            self.withdrawn.remove(&turn);
        }
        told?;
        world.reach("a turn was withdrawn");
        let open = vec![(turn, TurnState::Queued)];
        self.cancels.push(CancelAck { open, acknowledged_ms: world.now_ms(), is_withdrawal: true });
        Ok(())
    }

    async fn until_ended(&self, world: &World, agents: &Agents) {
        let Some(agent) = agents.get(self.slot) else { return };
        let ended = world.ended.notified();
        if open_turns(world, agent).is_empty() {
            return;
        }
        tokio::select! {
            biased;
            () = ended => {}
            () = sleep(Duration::from_millis(UNTIL_ENDED_MS)) => {}
        }
    }

    async fn launch(
        &mut self,
        service: &AgentService,
        world: &World,
        agents: &Agents,
    ) -> Result<(), Refusal> {
        let key = CommandKey { key: format!("launch-{}", self.slot), body: self.prompt() };
        let launch = Launch {
            prompt: self.prompt(),
            cancel_on_disconnect: self.bound,
            idempotency: Some(key),
            ..Launch::default()
        };
        let launched = service.launch(launch).await?;
        let id = launched.agent.id;
        if agents.get(self.slot).is_some_and(|known| known != id) {
            world.fail("G10: the same launch gave two agents");
        }
        agents.set(self.slot, id);
        self.launched = true;
        Ok(())
    }

    async fn send(
        &mut self,
        agent: AgentId,
        number: u64,
        service: &AgentService,
        world: &World,
    ) -> Result<(), Refusal> {
        let content = self.content(number);
        let key = CommandKey { key: format!("send-{}-{number}", self.slot), body: content.clone() };
        let began = Instant::now();
        let told = service.send(agent, content.into(), Some(key)).await;
        world.check(bounds::command(
            began.elapsed(),
            world.faults.limits.commands.command_timeout,
            &world.faults,
        ));
        let turn = told?.turn;
        if *self.sent.entry(number).or_insert(turn) != turn {
            world.fail("G10: the same message became two turns");
        }
        Ok(())
    }
}

fn is_final(refusal: &Refusal) -> bool {
    match refusal {
        Refusal::NotFound(_)
        | Refusal::Deleted
        | Refusal::ParentDeleted
        | Refusal::ReadOnly
        | Refusal::Active
        | Refusal::QueueFull
        | Refusal::UnknownType { .. }
        | Refusal::TypeMissing
        | Refusal::OtherType { .. }
        | Refusal::CwdNotAllowed(_)
        | Refusal::OutsideParent
        | Refusal::TooDeep { .. }
        | Refusal::CursorAhead { .. }
        | Refusal::RequestUnknown(_)
        | Refusal::RequestSettled(_)
        | Refusal::TurnUnknown(_)
        | Refusal::TurnStarted(_)
        | Refusal::TurnTaken(_)
        | Refusal::OptionUnknown { .. }
        | Refusal::ReplyNotAccepted(_)
        | Refusal::ReplyTooLong { .. }
        | Refusal::ChangesUnknown(_)
        | Refusal::ImagesNotAccepted { .. }
        | Refusal::ImageUnknown
        | Refusal::NodeUnknown(_)
        | Refusal::NodeAlive(_)
        | Refusal::NoNodeNamed(_)
        | Refusal::SeveralNodesNamed { .. }
        | Refusal::FolderElsewhere
        | Refusal::KeyReused => true,
        Refusal::TooManyQueuedLaunches
        | Refusal::TooManyChildren { .. }
        | Refusal::TooManyImports
        | Refusal::AnswerNotDelivered
        | Refusal::TooManyChanges
        | Refusal::TooManyLaunches { .. }
        | Refusal::NodeUnavailable { .. }
        | Refusal::TypeNotHere { .. }
        | Refusal::NodeNotAlive { .. }
        | Refusal::DataDiskFull
        | Refusal::OutOfTouch
        | Refusal::ShuttingDown => false,
        Refusal::Store(error) => !error.is_transient(),
    }
}

/// The running and queued turns, as saved on the disk.
fn open_turns(world: &World, agent: AgentId) -> Vec<TurnNumber> {
    let turns = world.disk.saved_turns(agent);
    turns.iter().filter(|turn| !matches!(turn.state, TurnState::Ended(_))).map(|turn| turn.number).collect()
}

fn plan(world: &World, dice: &mut Dice) -> Vec<Deed> {
    let faults = &world.faults;
    let mut moments = Dice::of(world.seed, "commanders at the end of turns");
    let mut jumps = Dice::of(world.seed, "clock jumps before repeated messages");
    let mut withdrawals = Dice::of(world.seed, "withdrawn messages");
    let mut plan = vec![Deed::Wait(dice.below(300)), Deed::Launch];
    if dice.chance(200) {
        plan.push(Deed::LaunchAgain);
    }
    for number in 0..faults.deeds {
        plan.push(Deed::Wait(dice.pick(&[0, 3, 30, 300, 3000, 30_000])));
        if moments.chance(AT_THE_END) {
            plan.extend([Deed::UntilEnded, Deed::Send(OF_THE_END + number)]);
        }
        if dice.chance(faults.cancels) {
            plan.push(Deed::Cancel);
            if dice.chance(200) {
                plan.push(Deed::Cancel);
            }
        }
        if dice.chance(600) {
            plan.push(Deed::Send(number));
            if withdrawals.chance(WITHDRAW) {
                plan.push(Deed::Withdraw);
            }
            if dice.chance(300) {
                // Keys must not expire by the clock, so the clock jumps between some messages and their repetition.
                if 0 < faults.clock_jump_ms && jumps.chance(JUMP_BEFORE_REPEAT) {
                    plan.push(Deed::JumpClock(faults.clock_jump_ms as i64));
                }
                plan.push(Deed::SendAgain(number));
            }
        }
        if dice.chance(300) && 0 < faults.clock_jump_ms {
            let ms = faults.clock_jump_ms as i64;
            plan.push(Deed::JumpClock(if dice.chance(500) { ms } else { -ms }));
        }
    }
    if dice.chance(faults.deletes) {
        plan.push(Deed::Delete { purge: dice.chance(500) });
    }
    plan.push(Deed::Wait(dice.pick(&[1, 1000, 60_000])));
    plan
}
