//! Which values a limit may have.

use tokenrail_runner::ANSWER_TEXT_BYTES;

/// Ten years: longer than any useful wait, and small enough for every clock.
const LONGEST_S: u64 = 10 * 365 * 24 * 3600;
const LONGEST_HOURS: u64 = LONGEST_S / 3600;
/// The maximum of times in milliseconds and microseconds.
const LONGEST_PAUSE_MS: u64 = 60_000;
/// A pebibyte, or that many items: more than any machine has, and small enough to calculate with.
const MOST: u64 = 1 << 50;
/// See setpriority(2).
const NICEST: u64 = 19;
const MOST_RESTS: u64 = 1000;

/// Limits that may be 0, which then means "none".
const OPTIONAL: [&str; 8] = [
    "agent_processes",
    "agent_memory_bytes",
    "agent_nice",
    "resting_agents",
    "run_gather_us",
    "follower_wait_ms",
    "flood_rest",
    "time_slice_us",
];

/// Without time to kill, no process would be killed.
const KILL_GRACE: &str = "kill_grace_s";

/// What is wrong with the value of a limit. A grace period may be 0, except that of a kill. Most limits may not be 0.
pub(super) fn wrong(name: &str, value: u64) -> Option<String> {
    let is_grace = name.ends_with("_grace_s") && name != KILL_GRACE;
    if value == 0 && !is_grace && !OPTIONAL.contains(&name) {
        return Some(format!("limits.{name}: 0 is too small; it must be at least 1"));
    }
    let (most, why) = match name {
        "agent_nice" => (NICEST, " (the lowest priority)"),
        "answer_text_bytes" => (ANSWER_TEXT_BYTES as u64, " (64 KiB)"),
        "flood_rest" => (MOST_RESTS, " (at that value, an agent that prints too much almost stops)"),
        _ if name.ends_with("_s") => (LONGEST_S, " (ten years)"),
        _ if name.ends_with("_ms") => (LONGEST_PAUSE_MS, " (one minute)"),
        _ if name.ends_with("_us") => (LONGEST_PAUSE_MS * 1000, " (one minute)"),
        _ if name.ends_with("_hours") => (LONGEST_HOURS, " (ten years)"),
        _ => (MOST, ""),
    };
    (most < value).then(|| format!("limits.{name}: {value} is too large; it must be at most {most}{why}"))
}
