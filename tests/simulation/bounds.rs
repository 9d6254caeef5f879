//! Upper bounds on the server's memory and time, checked after each step against the configured limits.

use std::time::Duration;

use tokenrail_application::{AgentService, Limits, OpenRequest};
use tokenrail_domain::{AgentId, Event, Timestamp, TurnNumber};
use tokenrail_ports::{Append, PageLimit};

use crate::faults::Faults;
use crate::journal::TurnSoFar;
use crate::outages::Outages;
use crate::process::{Hang, KILL_GRACE_MS, Process, SWEEP_MS};
use crate::runner::{FRAMER, OUTPUT_LINES};
use crate::world::World;

/// Events that one line of output may become, including those that end a turn.
const EVENTS_PER_LINE: usize = 3;
/// An event holds its raw line and the parsed text. If it completes a message, the text is there twice.
const COPIES: usize = 3;
/// The time allowed for work that takes no time in principle: virtual time passes between two steps.
const MOMENT_MS: u64 = 100;
/// Attempts that may fail in a row, each followed by the longest pause.
const TRIES: u64 = 8;
/// Writes that may precede the end of a turn, each delayed by the whole of [`trouble_ms`].
const WRITES: u64 = 4;
/// Steps of one wait that may be delayed.
const STEPS: u64 = 40;

/// How much longer than its limit a wait of the server may take, given the faults of the seed: a store that fails or
/// is slow, agents that start slowly, servers that are stopped.
pub(crate) fn trouble_ms(faults: &Faults) -> u64 {
    let fails = faults.store_error + faults.commit_unknown + faults.read_error + faults.outage_ms != 0;
    let tries = if fails { TRIES } else { 0 };
    let stops = stops(faults);
    MOMENT_MS
        + tries * ms(faults.limits.saving.retry_pause_max)
        + STEPS * faults.store_delay_ms
        + faults.start_delay_ms
        + outages_ms(faults)
        + stops * MOMENT_MS
}

/// The outages that a wait usually meets: one in each life of the server.
fn outages_ms(faults: &Faults) -> u64 {
    (1 + stops(faults)) * faults.outage_ms
}

fn stops(faults: &Faults) -> u64 {
    if faults.graceful != 0 { faults.crashes + 1 } else { faults.crashes }
}

/// The same for the end of a turn. All its output is saved before, in many consecutive writes.
pub(crate) fn trouble_of_end_ms(faults: &Faults) -> u64 {
    WRITES * trouble_ms(faults)
}

fn ms(duration: Duration) -> u64 {
    duration.as_millis() as u64
}

/// Memory: what the server holds at this moment for agents and followers.
pub(crate) fn memory(service: &AgentService, faults: &Faults) -> Result<(), String> {
    let (limits, held) = (&faults.limits, service.stats().tail_bytes as usize);
    let most = limits.reading.tails_bytes.min(faults.slots * limits.reading.tail_bytes);
    if held <= most { Ok(()) } else { Err(format!("G20: the tails hold {held} bytes of at most {most}")) }
}

/// What clients are told to be open is saved.
pub(crate) fn needs(service: &AgentService, world: &World) -> Result<(), String> {
    let is_saved = |question: &OpenRequest| {
        let ledgers = &world.lock().ledgers;
        ledgers.get(&question.agent).is_some_and(|ledger| ledger.questions.contains_key(&question.request_id))
    };
    for question in service.list_open_requests(None, usize::MAX).items {
        if is_saved(&question) {
            continue;
        }
        // After a crash directly after a commit, the ledger is older than the disk.
        world.sync(question.agent);
        if !is_saved(&question) {
            return Err(format!("N1: {question:?} is told to be open, and is not saved"));
        }
    }
    Ok(())
}

/// Memory: the events that waited for this commit.
pub(crate) fn pending(append: &Append, limits: &Limits) -> Result<(), String> {
    let of = |event: &Event| {
        size_of::<Event>() + event.body.text_bytes() + event.raw.as_ref().map_or(0, bytes::Bytes::len)
    };
    for part in append.parts() {
        let bytes: usize = part.events.iter().map(of).sum();
        let (events, most) = (part.events.len(), most_pending(limits));
        let most_bytes = limits.saving.pending_bytes + OUTPUT_LINES * COPIES * FRAMER.line_bytes;
        if most < events || most_bytes < bytes {
            return Err(format!(
                "G19: {events} events of {bytes} bytes have waited, of {most}, {most_bytes}"
            ));
        }
    }
    Ok(())
}

/// The limit may be exceeded by one read: the pump parses all lines of a read before it stops reading.
fn most_pending(limits: &Limits) -> usize {
    limits.saving.pending_events + OUTPUT_LINES * EVENTS_PER_LINE
}

/// Memory: the events that a reader holds while it writes to its client.
pub(crate) fn page(events: usize, limits: &Limits) -> Result<(), String> {
    let most = most_pending(limits).max(limits.reading.history_events);
    if events <= most { Ok(()) } else { Err(format!("G18: a reader holds {events} events of {most}")) }
}

/// Memory: the events that one read takes from the store.
pub(crate) fn read(asked: PageLimit, limits: &Limits) -> Result<(), String> {
    let (events, bytes) = (
        limits.reading.page_events.max(limits.reading.history_events),
        limits.reading.page_bytes.max(limits.reading.history_bytes),
    );
    if asked.events <= events && asked.bytes <= bytes {
        Ok(())
    } else {
        Err(format!("G18: {asked:?} are read at once, of {events} events and {bytes} bytes"))
    }
}

/// Time: an event waits no longer than the limit for followers plus the delays of the store. If the store fails,
/// there is no bound. If the clock jumps, the timestamps prove nothing.
pub(crate) fn put_off(append: &Append, now: Timestamp, faults: &Faults) -> Result<(), String> {
    let read = append.parts().flat_map(|part| part.events.iter()).map(|event| event.at.0).min();
    let Some(read) = read.filter(|_| !is_unpunctual(faults)) else { return Ok(()) };
    let (waited, most) = (now.0 - read, ms(faults.limits.saving.follower_wait) + trouble_ms(faults));
    if waited <= most as i64 {
        Ok(())
    } else {
        Err(format!("G18: an event waited for {waited} ms before it was saved, of {most}"))
    }
}

/// Time: after the server has read an event, a reader that keeps up and waits since `asked` gets it no later than some
/// limits for followers plus the delays of the store. One limit is before the event is saved, one is before it is
/// announced, and four are for memory, if the event is read from the store. The exceptions are those of [`put_off`].
pub(crate) fn shown(
    events: &[Event],
    asked: Timestamp,
    now: Timestamp,
    faults: &Faults,
) -> Result<(), String> {
    let Some(first) = events.first().filter(|_| !is_unpunctual(faults)) else { return Ok(()) };
    let (waited, most) =
        (now.0 - first.at.0.max(asked.0), 6 * ms(faults.limits.saving.follower_wait) + trouble_ms(faults));
    if waited <= most as i64 {
        Ok(())
    } else {
        Err(format!("G18: a reader waited for {waited} ms for event {}, of {most}", first.sequence))
    }
}

/// Whether a store that fails or a clock that jumps leaves no bound for a wait.
fn is_unpunctual(faults: &Faults) -> bool {
    faults.store_error + faults.commit_unknown + faults.outage_ms + faults.clock_jump_ms != 0
}

/// Time: a hanging agent is stopped when its timeout is reached. Called when the server tells it to stop. If one outage
/// follows the other, what was printed before them is saved after them all.
pub(crate) fn stopped(
    process: &Process,
    (agent, turn): (AgentId, TurnNumber),
    (now, outages): (u64, &Outages),
    faults: &Faults,
) -> Result<(), String> {
    let limits = &faults.limits;
    let Some(hang) = process.hangs() else { return Ok(()) };
    let bound = match hang {
        Hang::AfterResult => limits.run.result_grace,
        Hang::InMessage => limits.run.stream_timeout,
        Hang::Silent => limits.run.idle_timeout,
        Hang::InTool | Hang::InLine => limits.run.turn_timeout,
    };
    // Output printed before an outage is saved after it, and each batch may wait for the followers.
    let usual = process.heard_ms + ms(bound) + trouble_ms(faults) + STEPS * ms(limits.saving.follower_wait);
    let down_ms = outages.between(process.heard_ms, now, ms(limits.saving.retry_pause_max));
    let most = usual + down_ms.saturating_sub(outages_ms(faults));
    if now <= most {
        return Ok(());
    }
    let (late, heard) = (now - most, process.heard_ms);
    Err(format!(
        "G15: turn {turn} of agent {agent} hung {hang:?} from {heard} on, and was stopped {late} ms late"
    ))
}

/// Time: how long a turn may take in total. A restarted server computes the elapsed time from the clock. If the clock
/// has jumped, the turn may get its full time again after each start.
pub(crate) fn turn(told: &TurnSoFar, lives: u32, faults: &Faults) -> Result<(), String> {
    let (Some(began), Some(ended)) = (told.began_ms, told.ended_ms) else { return Ok(()) };
    let times = if faults.clock_jump_ms == 0 { 1 } else { u64::from(lives) };
    let most =
        times * ms(faults.limits.run.turn_timeout) + KILL_GRACE_MS + SWEEP_MS + trouble_of_end_ms(faults);
    let took = ended - began;
    if took <= most { Ok(()) } else { Err(format!("G15: a turn took {took} ms, of {most}")) }
}

/// Time: how long a command may take.
pub(crate) fn command(took: Duration, bound: Duration, faults: &Faults) -> Result<(), String> {
    let most = bound + Duration::from_millis(MOMENT_MS + STEPS * faults.store_delay_ms);
    if took <= most {
        Ok(())
    } else {
        Err(format!("G15: a command was answered after {took:?}, of {most:?}"))
    }
}
