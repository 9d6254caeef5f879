//! What was dropped, although a standby that lags far behind may lack it.
//!
//! Only the primary of a failover knows what its standby had, and it is gone. But the beats of a node are in the log of
//! the database like everything else: a server that has a beat has everything that was acknowledged before it was sent.

use std::collections::VecDeque;

use crate::postgres::command::KeptBeat;
use crate::postgres::database::known_server::UNKNOWN_TIMELINE;

/// Beats that are remembered. Those before them count as one.
const BEATS: usize = 1024;

/// How many entries were dropped, between which beats.
#[derive(Default)]
pub(super) struct Dropped {
    /// Of the server that has acknowledged them.
    timeline: u32,
    /// The oldest first, each with how many were dropped that are not older than the beat before it.
    beats: VecDeque<(KeptBeat, u64)>,
    /// How many were dropped that no beat has followed yet.
    since: u64,
    /// The newest of them.
    newest: u64,
}

impl Dropped {
    /// From here on, the server of this timeline acknowledges.
    pub(super) fn on(&mut self, timeline: u32) {
        self.timeline = self.timeline.max(timeline);
    }

    pub(super) fn drop_one(&mut self, number: u64) {
        let at = self.beats.partition_point(|(beat, _)| beat.newest < number);
        if let Some((_, dropped)) = self.beats.get_mut(at) {
            *dropped += 1;
        } else {
            self.since += 1;
            self.newest = self.newest.max(number);
        }
    }

    /// The server of this timeline has acknowledged a beat.
    pub(super) fn follow_up(&mut self, timeline: u32, beat: KeptBeat) {
        if timeline < self.timeline {
            return;
        }
        let is_after_all = self.newest <= beat.newest;
        let dropped = if is_after_all { std::mem::take(&mut self.since) } else { 0 };
        self.beats.push_back((beat, dropped));
        if BEATS < self.beats.len()
            && let Some((_, oldest)) = self.beats.pop_front()
            && let Some((_, next)) = self.beats.front_mut()
        {
            *next += oldest;
        }
    }

    /// Whether the server of this timeline may lack something of this.
    pub(super) fn is_before(&self, timeline: u32) -> bool {
        self.timeline != UNKNOWN_TIMELINE && self.timeline < timeline
    }

    /// How many of them another server may lack, which has this beat, or none. They are not counted again.
    pub(super) fn lose(&mut self, timeline: u32, there: Option<u64>) -> u64 {
        if !self.is_before(timeline) {
            return 0;
        }
        let Self { beats, since, .. } = std::mem::take(self);
        self.timeline = timeline;
        let lost = beats.iter().filter(|(beat, _)| there.is_none_or(|there| there < beat.beat));
        lost.map(|(_, dropped)| dropped).sum::<u64>() + since
    }
}
