//! Which faults exist in one simulation, and how strong they are.

use std::time::Duration;

use tokenrail_application::{AdmissionLimits, CommandLimits, Limits, ReadingLimits, SavingLimits};

use crate::dice::Dice;

/// What an agent may do that a well-behaved one never or seldom does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quirk {
    NoResult,
    ErrorResult,
    ResultTwice,
    HalfResult,
    TurnOfItsOwn,
    HangAfterResult,
    HangInMessage,
    HangInTool,
    Stall,
    Garbage,
    InvalidUtf8,
    LongLine,
    Retry,
    EmptyMessage,
    ChunkWithoutStart,
    EndWithoutStart,
    WholeOnly,
    Tools,
    CrLf,
    NoLastLineEnd,
    Flood,
    Children,
    IgnoresTerm,
    AnswersInterrupt,
    DiesAtStart,
    /// Sends permission requests.
    Asks,
}

const QUIRKS: [Quirk; 26] = [
    Quirk::NoResult,
    Quirk::ErrorResult,
    Quirk::ResultTwice,
    Quirk::HalfResult,
    Quirk::TurnOfItsOwn,
    Quirk::HangAfterResult,
    Quirk::HangInMessage,
    Quirk::HangInTool,
    Quirk::Stall,
    Quirk::Garbage,
    Quirk::InvalidUtf8,
    Quirk::LongLine,
    Quirk::Retry,
    Quirk::EmptyMessage,
    Quirk::ChunkWithoutStart,
    Quirk::EndWithoutStart,
    Quirk::WholeOnly,
    Quirk::Tools,
    Quirk::CrLf,
    Quirk::NoLastLineEnd,
    Quirk::Flood,
    Quirk::Children,
    Quirk::IgnoresTerm,
    Quirk::AnswersInterrupt,
    Quirk::DiesAtStart,
    Quirk::Asks,
];

/// The pieces in which an agent's output reaches the spool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    Lines,
    /// Cut anywhere, also in the middle of a line.
    Pieces,
    EveryByte,
    Burst,
}

/// Which faults exist in one simulation. Chances are per mille.
#[derive(Debug, Clone)]
pub(crate) struct Faults {
    pub(crate) slots: usize,
    pub(crate) readers: usize,
    pub(crate) deeds: u64,
    pub(crate) messages: u64,
    pub(crate) deltas: u64,
    pub(crate) pace_ms: u64,
    pub(crate) cut: Cut,
    pub(crate) quirks: Vec<Quirk>,
    /// How likely each quirk is in one run of an agent.
    pub(crate) quirk: u64,
    pub(crate) store_delay_ms: u64,
    pub(crate) store_error: u64,
    pub(crate) commit_unknown: u64,
    pub(crate) read_error: u64,
    /// The longest time for which the store sometimes fails completely.
    pub(crate) outage_ms: u64,
    pub(crate) crashes: u64,
    /// The number of steps within which a crash happens.
    pub(crate) crash_within: u64,
    pub(crate) supervisor_dies: u64,
    pub(crate) graceful: u64,
    pub(crate) start_error: u64,
    pub(crate) start_delay_ms: u64,
    pub(crate) spool_error: u64,
    pub(crate) disconnect_ms: u64,
    pub(crate) slow_ms: u64,
    pub(crate) cancels: u64,
    pub(crate) deletes: u64,
    pub(crate) bound: u64,
    pub(crate) clock_jump_ms: u64,
    /// Agents keep nothing on the disk of their node. Their runs end with its process.
    pub(crate) needs_no_home: bool,
    pub(crate) limits: Limits,
}

impl Faults {
    /// No fault at all: one agent, one reader.
    pub(crate) fn none() -> Self {
        Self {
            slots: 1,
            readers: 1,
            deeds: 0,
            messages: 2,
            deltas: 8,
            pace_ms: 20,
            cut: Cut::Lines,
            quirks: Vec::new(),
            quirk: 0,
            store_delay_ms: 0,
            store_error: 0,
            commit_unknown: 0,
            read_error: 0,
            outage_ms: 0,
            crashes: 0,
            crash_within: 0,
            supervisor_dies: 0,
            graceful: 0,
            start_error: 0,
            start_delay_ms: 0,
            spool_error: 0,
            disconnect_ms: 0,
            slow_ms: 0,
            cancels: 0,
            deletes: 0,
            bound: 0,
            clock_jump_ms: 0,
            needs_no_home: false,
            limits: tiny_limits(),
        }
    }

    /// Draws the faults for a seed: first which ones exist, then how strong they are. This way rare combinations get
    /// whole simulations to themselves.
    pub(crate) fn draw(seed: u64) -> Self {
        // Each fault has its own dice, so a fault that is added later changes nothing of what a seed has drawn
        // before.
        let dice = |name: &str| Dice::of(seed, &format!("swarm {name}"));
        let some = |name, exists, least, most| some(dice(name), exists, least, most);
        let cuts = [Cut::Lines, Cut::Lines, Cut::Pieces, Cut::Pieces, Cut::EveryByte, Cut::Burst];
        Self {
            slots: dice("slots").between(1, 3) as usize,
            readers: dice("readers").between(1, 4) as usize,
            deeds: dice("deeds").between(0, 4),
            messages: dice("messages").between(1, 3),
            deltas: dice("deltas").pick(&[1, 4, 8, 8, 20]),
            pace_ms: dice("pace").pick(&[0, 1, 5, 50, 400]),
            cut: dice("cut").pick(&cuts),
            quirks: draw_quirks(seed),
            quirk: dice("quirk").pick(&[150, 400, 800]),
            store_delay_ms: some("store delay", 400, 1, 300),
            store_error: some("store error", 250, 10, 400),
            commit_unknown: some("commit unknown", 300, 10, 400),
            read_error: some("read error", 200, 10, 300),
            outage_ms: some("outage", 100, 100, 20_000),
            crashes: some("crashes", 450, 1, 4),
            crash_within: dice("crash within").pick(&[15, 60, 250, 900]),
            supervisor_dies: some("supervisor dies", 250, 200, 1000),
            graceful: some("graceful", 150, 200, 1000),
            start_error: some("start error", 100, 50, 500),
            start_delay_ms: some("start delay", 150, 10, 9000),
            spool_error: some("spool error", 60, 2, 30),
            disconnect_ms: some("disconnect", 500, 5, 3000),
            slow_ms: some("slow", 350, 10, 2000),
            cancels: some("cancels", 350, 200, 700),
            deletes: some("deletes", 120, 100, 400),
            bound: some("bound", 60, 300, 800),
            clock_jump_ms: some("clock jump", 150, 500, 108_000_000),
            needs_no_home: false,
            limits: draw_limits(dice("limits"), dice("tail")),
        }
    }
}

fn draw_limits(mut tiny: Dice, mut tail: Dice) -> Limits {
    if !tiny.chance(600) {
        return wide_limits();
    }
    let mut limits = tiny_limits();
    if tail.chance(500) {
        // Saved events are often held back until followers have taken others, and there is room for them.
        limits.saving.pending_events = 1;
        limits.reading.tail_bytes *= 4;
        limits.reading.tails_bytes *= 4;
    }
    limits
}

/// No quirk, one quirk, or some of them.
fn draw_quirks(seed: u64) -> Vec<Quirk> {
    let mut dice = Dice::of(seed, "swarm quirks");
    let (how, share) = (dice.below(4), dice.between(100, 700));
    let of = |quirk: &Quirk| Dice::of(seed, &format!("swarm quirk {quirk:?}"));
    match how {
        0 => Vec::new(),
        1 => QUIRKS.into_iter().max_by_key(|quirk| of(quirk).next()).into_iter().collect(),
        _ => QUIRKS.into_iter().filter(|quirk| of(quirk).chance(share)).collect(),
    }
}

/// A value between the two bounds in `exists` of 1000 simulations, else 0.
fn some(mut dice: Dice, exists: u64, least: u64, most: u64) -> u64 {
    let strength = dice.between(least, most);
    if dice.chance(exists) { strength } else { 0 }
}

/// Small limits, so that every simulation reaches them, and not only one under load.
pub(crate) fn tiny_limits() -> Limits {
    let Limits { admission, run, saving, reading, commands, lists, nodes } = wide_limits();
    Limits {
        admission: AdmissionLimits { running_agents: 2, queued_launches: 2, queued_turns: 2, ..admission },
        run,
        saving: SavingLimits {
            pending_events: 4,
            pending_bytes: 4096,
            follower_wait_from: 1,
            retry_pause: Duration::from_millis(3),
            retry_pause_max: Duration::from_millis(50),
            ..saving
        },
        reading: ReadingLimits {
            page_events: 3,
            history_events: 5,
            tail_bytes: 6000,
            tails_bytes: 12_000,
            ..reading
        },
        commands: CommandLimits { command_timeout: Duration::from_secs(1), ..commands },
        lists,
        nodes,
    }
}

/// The limits of the configuration, with shorter waits: agents that hang must not fill whole simulations.
fn wide_limits() -> Limits {
    let mut limits = Limits::default();
    limits.run.idle_timeout = Duration::from_mins(3);
    limits.run.turn_timeout = Duration::from_mins(12);
    limits.admission.launches_per_minute = u32::MAX;
    limits
}
