//! When the store fails for a while. One outage may follow the other.

/// The outages so far, in virtual milliseconds.
#[derive(Debug, Default)]
pub(crate) struct Outages(Vec<(u64, u64)>);

impl Outages {
    pub(crate) fn is_down(&self, now: u64) -> bool {
        self.0.last().is_some_and(|(_, until)| now < *until)
    }

    pub(crate) fn begin(&mut self, now: u64, lasts_ms: u64) {
        self.0.push((now, now + lasts_ms));
    }

    /// How much of this time nobody could use the store. A server notices the end of each outage `pause_ms` later at
    /// most.
    pub(crate) fn between(&self, from: u64, now: u64, pause_ms: u64) -> u64 {
        let in_time = self.0.iter().filter(|(begin, until)| *begin < now && from < *until);
        in_time.map(|(begin, until)| (*until).min(now) - (*begin).max(from) + pause_ms).sum()
    }
}

#[test]
fn only_outages_within_the_time_count() {
    let mut outages = Outages::default();
    for (begin, lasts) in [(10, 5), (20, 10), (50, 5)] {
        assert!(!outages.is_down(begin));
        outages.begin(begin, lasts);
        assert!(outages.is_down(begin + lasts - 1) && !outages.is_down(begin + lasts));
    }
    assert_eq!(outages.between(15, 50, 1), 10 + 1);
    assert_eq!(outages.between(12, 25, 1), 3 + 1 + 5 + 1);
    assert_eq!(outages.between(55, 99, 1), 0);
}
