//! The notices that the server itself writes into journals.

/// The process has ended, and processes that it had left behind were ended.
pub(crate) const REAPED: &str = "reaped";
/// The agent has begun a turn by itself, with a line that displays nothing.
pub(crate) const TURN_BEGAN: &str = "turn_began";
/// Saves lines that display nothing.
pub(crate) const UNSHOWN_OUTPUT: &str = "unshown_output";
/// Takes the place of an event that a failover has lost.
pub(crate) const EVENTS_LOST: &str = "events_lost";

/// Whether the server itself writes notices of this type. No line of an agent produces them.
pub(crate) fn is_own_notice(subtype: &str) -> bool {
    ALL.contains(&subtype)
}

const ALL: [&str; 4] = [REAPED, TURN_BEGAN, UNSHOWN_OUTPUT, EVENTS_LOST];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_lists_each_notice_that_tokenrail_adds() {
        let page = include_str!("../../../docs/reference/protocol/events.md");
        let (_, table) = page.split_once("Tokenrail adds these notices itself:\n\n").expect("the list");
        // After the two lines of the head.
        let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
        let listed: Vec<&str> = rows.filter_map(|row| row.split('`').nth(1)).collect();
        // The adapters of protocols write this one as a line, and a parser reads it.
        let by_line = ["session_lost"];
        assert_eq!(listed, [&by_line[..], &ALL].concat());
    }
}
