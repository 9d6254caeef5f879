//! The format of the commands to the supervisor: lines in the FIFO `control`.

use tokio::time::Duration;

/// The command that makes a supervisor check whether its run is over a limit.
pub(crate) const LOOK: &str = "look";

const CANCEL: &str = "cancel";

/// The command to stop the agent. It carries its own grace times, because the limits of the server that sends it count.
/// That server may have other limits than the one that wrote the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CancelLine {
    /// How long the agent may take to end by itself.
    pub(crate) grace: Duration,
    /// How long its processes may take to end after that.
    pub(crate) kill: Duration,
}

impl CancelLine {
    pub(crate) fn to_line(self) -> String {
        format!("{CANCEL} {} {}\n", self.grace.as_millis(), self.kill.as_millis())
    }

    /// Reads a line. `None` if it is another command.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        if words.next()? != CANCEL {
            return None;
        }
        let mut duration = || Some(Duration::from_millis(words.next()?.parse().ok()?));
        Some(Self { grace: duration()?, kill: duration()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_supervisor_reads_the_command_that_a_server_writes() {
        let command = CancelLine { grace: Duration::from_secs(10), kill: Duration::from_millis(250) };
        // Supervisors of older servers read this line too.
        assert_eq!(command.to_line(), "cancel 10000 250\n");
        assert_eq!(CancelLine::parse(&command.to_line()), Some(command));
        for other in ["", "look", "cancel", "cancel 1", "cancel x 1"] {
            assert_eq!(CancelLine::parse(other), None, "{other}");
        }
    }
}
