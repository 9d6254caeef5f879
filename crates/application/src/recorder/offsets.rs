//! How far the output of a run has been taken in.

/// How far the output of a run has been taken in: byte offsets into its spool.
#[derive(Debug, Clone, Copy)]
pub(super) struct Offsets {
    /// The recorded events account for the output up to here.
    pub(super) accounted: u64,
    /// The output has been taken in up to here: recorded, or left out.
    pub(super) taken_in: u64,
    /// The journal had the output up to here when the recorder began.
    committed: u64,
    /// The parser has read the output up to here. After a restart it reads the output from the beginning.
    parsed: u64,
}

impl Offsets {
    pub(super) fn new(committed: u64) -> Self {
        Self { accounted: committed, taken_in: committed, committed, parsed: 0 }
    }

    /// Notes that the parser reads a line that ends here. Returns whether the line is new to the journal.
    pub(super) fn parse(&mut self, end: u64) -> bool {
        self.parsed = end;
        let is_new = self.committed < end;
        if is_new {
            self.taken_in = end;
        }
        is_new
    }

    /// An event accounts for the output up to here.
    pub(super) fn account(&mut self, end: u64) {
        self.accounted = self.accounted.max(end);
    }

    /// Notes that the output up to here counts as taken in, but is left out.
    pub(super) fn leave_out(&mut self, end: u64) {
        self.taken_in = self.taken_in.max(end);
    }

    /// Whether the parser has read all output that the journal already had.
    pub(super) fn has_caught_up(&self) -> bool {
        self.committed <= self.parsed
    }
}
