//! The cursor of a live read. It has nothing to do with positions: a client sends it back with its next request, so
//! that a cache between them does not answer with the same response for ever.

use tokenrail_domain::Timestamp;

/// 2024-10-09, from which the protocol counts.
const EPOCH_MS: i64 = 1_728_432_000_000;
const INTERVAL_MS: i64 = 20_000;
/// The protocol moves a cursor that is not older than the time by up to an hour.
const JITTER_INTERVALS: u64 = 180;
/// Longer cursors are not from this server.
const DIGITS: usize = 15;

/// The cursor at a time.
pub(super) fn cursor_at(now: Timestamp) -> u64 {
    u64::try_from((now.0 - EPOCH_MS) / INTERVAL_MS).unwrap_or_default()
}

/// The cursor for a client that has sent one: always a greater one.
pub(super) fn cursor_after(theirs: Option<&str>, now: Timestamp, random: u8) -> u64 {
    let is_number = |text: &&str| text.len() <= DIGITS && text.bytes().all(|byte| byte.is_ascii_digit());
    let ours = cursor_at(now);
    match theirs.filter(is_number).and_then(|text| text.parse::<u64>().ok()) {
        Some(theirs) if ours <= theirs => theirs + 1 + u64::from(random) % JITTER_INTERVALS,
        _ => ours,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_the_interval_and_always_greater_than_the_clients() {
        let now = Timestamp(EPOCH_MS + 1000 * INTERVAL_MS + 1);
        for older in [None, Some("999"), Some("0"), Some(""), Some("x"), Some("-1"), Some("9999999999999999")]
        {
            assert_eq!(cursor_after(older, now, 7), 1000, "{older:?}");
        }
        for random in [0, 1, 179, 180, 255] {
            for theirs in [1000_u64, 1001, 5000, 999_999_999_999_999] {
                let next = cursor_after(Some(&theirs.to_string()), now, random);
                assert!(theirs < next && next <= theirs + JITTER_INTERVALS, "{theirs} {next}");
            }
        }
        assert_eq!(cursor_at(Timestamp(0)), 0, "a clock that is wrong is no failure");
    }
}
