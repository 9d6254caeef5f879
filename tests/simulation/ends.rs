//! What must be true after the faults are over and everything has ended.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use tokenrail_domain::{AgentId, Event, TurnNumber, TurnOutcome, TurnState};
use tokenrail_ports::Line;
use tokenrail_runner::LineFramer;

use crate::bounds;
use crate::cancels::Ended;
use crate::commander::Commander;
use crate::journal::Ledger;
use crate::process::Process;
use crate::runner::FRAMER;
use crate::simulation::Cast;
use crate::view::View;
use crate::world::World;

/// Everything that must be true at the end.
pub(crate) fn everything(cast: &Cast) -> Result<(), String> {
    for commander in &cast.commanders {
        let agent = cast.agents.get(commander.slot);
        let Some(agent) = agent else {
            if commander.launched {
                return Err("G10: an agent that was launched is not known".to_owned());
            }
            continue;
        };
        if commander.purged {
            continue;
        }
        of_agent(&cast.world, commander, agent).map_err(|how| format!("{how}; agent {agent}"))?;
    }
    views(cast)?;
    nothing_runs(&cast.world)
}

fn of_agent(world: &World, commander: &Commander, agent: AgentId) -> Result<(), String> {
    world.sync(agent);
    let row = world.disk.saved_agent(agent).ok_or("G11: a launched agent is gone")?;
    let turns = world.disk.saved_turns(agent);
    let runs: BTreeMap<TurnNumber, TurnNumber> = turns.iter().map(|turn| (turn.number, turn.run)).collect();
    if let Some(open) = turns.iter().find(|turn| !matches!(turn.state, TurnState::Ended(_))) {
        return Err(format!("liveness: turn {} is {:?} for ever", open.number, open.state));
    }
    let state = world.lock();
    let empty = Ledger::default();
    let ledger = state.ledgers.get(&agent).unwrap_or(&empty);
    ledger.agrees_with(&row)?;
    prompts(ledger, commander)?;
    for turn in &turns {
        let told = ledger.turns.get(&turn.number).and_then(|told| told.outcome);
        if turn.state != told.map_or(TurnState::Running, TurnState::Ended) {
            return Err(format!(
                "G9: turn {} is {:?} and its journal says {told:?}",
                turn.number, turn.state
            ));
        }
    }
    for (number, told) in &ledger.turns {
        bounds::turn(told, state.life, &world.faults).map_err(|how| format!("{how}; turn {number}"))?;
    }
    let processes = state.processes.iter().filter(|((of, _), _)| *of == agent);
    for ((_, run), process) in processes {
        of_run(*run, process, ledger, &runs)?;
    }
    let cancelled = ledger.turns.iter().filter(|(_, told)| told.outcome == Some(TurnOutcome::Cancelled));
    let asked = commander.cancelled || commander.bound || state.agents_stopped;
    if !asked && cancelled.into_iter().any(|(turn, _)| !commander.withdrawn.contains(turn)) {
        return Err("G13: a turn was cancelled, and nobody had asked for it".to_owned());
    }
    let ended = Ended { faults: &world.faults, state: &state, ledger, agent, runs: &runs };
    commander.cancels.iter().try_for_each(|ack| ended.check(ack))
}

/// Each message became at most one turn, and exactly one if it was not cancelled.
fn prompts(ledger: &Ledger, commander: &Commander) -> Result<(), String> {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for prompt in ledger.turns.values().filter_map(|turn| turn.prompt.as_deref()) {
        *counts.entry(prompt).or_default() += 1;
    }
    if let Some((prompt, count)) = counts.iter().find(|(_, count)| 1 < **count) {
        return Err(format!("G10: {prompt:?} was said {count} times"));
    }
    if commander.cancelled || commander.bound {
        return Ok(());
    }
    let sent = commander.sent.keys().map(|number| commander.content(*number));
    let asked = sent.chain(commander.launched.then(|| commander.prompt()));
    match asked.into_iter().find(|prompt| !counts.contains_key(&**prompt)) {
        Some(lost) => Err(format!("G11: {lost:?} was accepted and never done")),
        None => Ok(()),
    }
}

/// The journal contains everything that one process printed, once and in order, and its turns ended as it reported.
fn of_run(
    run: TurnNumber,
    process: &Process,
    ledger: &Ledger,
    runs: &BTreeMap<TurnNumber, TurnNumber>,
) -> Result<(), String> {
    if process.unread {
        return Ok(());
    }
    let turns: Vec<_> = ledger
        .turns
        .iter()
        .filter(|(number, _)| runs.get(number) == Some(&run))
        .map(|(_, turn)| turn)
        .collect();
    let mut told = Vec::new();
    let raw = turns.iter().flat_map(|turn| &turn.raw).flat_map(|raw| raw.split(|byte| *byte == b'\n'));
    for line in raw.filter(|line| !line.is_empty()) {
        told.extend_from_slice(line);
        told.push(b'\n');
    }
    let printed = lines(process.output());
    if printed != told {
        return Err(format!("G2: run {run}: {}", difference(&printed, &told)));
    }
    let Some(expected) = process.outcomes() else { return Ok(()) };
    let outcomes: Vec<_> = turns.iter().filter_map(|turn| turn.outcome).collect();
    if outcomes == expected {
        return Ok(());
    }
    let codes: Vec<_> = turns.iter().map(|turn| &turn.code).collect();
    Err(format!("G17: run {run} should have ended {expected:?}, and did {outcomes:?} {codes:?}"))
}

/// The first line in which an output and the journal differ.
fn difference(printed: &[u8], told: &[u8]) -> String {
    let count = |lines: &[u8]| memchr::memchr_iter(b'\n', lines).count();
    let at = printed.iter().zip(told).take_while(|(a, b)| a == b).count();
    let rest = |lines: &[u8]| String::from_utf8_lossy(&lines[at..lines.len().min(at + 120)]).into_owned();
    format!(
        "of {} lines that were printed the journal has {}; where they part: {:?} and {:?}",
        count(printed),
        count(told),
        rest(printed),
        rest(told)
    )
}

/// The lines of an output as the journal keeps them.
fn lines(output: &[u8]) -> Vec<u8> {
    let mut framer = LineFramer::new(FRAMER);
    framer.feed(bytes::Bytes::copy_from_slice(output));
    let mut lines = Vec::new();
    let whole: Vec<_> = std::iter::from_fn(|| framer.next_line()).collect();
    for line in whole.into_iter().chain(framer.finish()) {
        let (Line::Whole(raw) | Line::Cut(raw) | Line::TooLong { head: raw, .. }) = line.line;
        if !raw.is_empty() {
            lines.extend_from_slice(&raw);
            lines.push(b'\n');
        }
    }
    lines
}

/// All readers that read to the end see the same, and it matches the journal.
fn views(cast: &Cast) -> Result<(), String> {
    for reader in &cast.readers {
        let Some(agent) = cast.agents.get(reader.slot).filter(|_| !reader.gone) else { continue };
        let state = cast.world.lock();
        let events: &[Event] = state.ledgers.get(&agent).map_or(&[], |ledger| &ledger.events);
        let mut expected = View::default();
        events.iter().try_for_each(|event| expected.live(event))?;
        if reader.view.last != expected.last {
            return Err(format!("liveness: a reader stopped at {} of {}", reader.view.last, expected.last));
        }
        if reader.view.items != expected.items {
            return Err(format!("G8: {:#?} is not {:#?}", reader.view.items, expected.items));
        }
    }
    Ok(())
}

fn nothing_runs(world: &World) -> Result<(), String> {
    let state = world.lock();
    let now = state.now_ms();
    match state.processes.iter().find(|(_, process)| process.is_alive(now) && !process.unread) {
        Some(((agent, turn), _)) => Err(format!("G14: turn {turn} of agent {agent} still has a process")),
        None => Ok(()),
    }
}

/// Describes everything that has not ended.
pub(crate) fn unfinished(world: &World) -> String {
    let agents: Vec<_> = world.lock().ledgers.keys().copied().collect();
    let mut out = String::new();
    for agent in agents {
        for turn in world.disk.saved_turns(agent) {
            if !matches!(turn.state, TurnState::Ended(_)) {
                let _ = write!(out, "turn {} of agent {agent} is {:?}; ", turn.number, turn.state);
            }
        }
    }
    out
}
