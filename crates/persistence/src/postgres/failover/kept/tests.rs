use async_trait::async_trait;
use tokenrail_ports::testing::samples::{Scribe, launch, notice};

use super::*;
use crate::postgres::command::Redone;
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::membership::Membership;

/// A change of so many bytes.
struct Sized(usize);

/// The same of an import.
struct OfAnImport(usize);

#[async_trait]
impl KeptChange for OfAnImport {
    fn bytes(&self) -> usize {
        self.0
    }

    fn is_of_an_import(&self) -> bool {
        true
    }

    async fn redo(&self, _db: &Link) -> Result<Redone, QueryFailure> {
        Ok(Redone::There)
    }
}

fn room(bytes: usize) -> KeptRoom {
    KeptRoom { bytes, import_bytes: 50 }
}

struct OfTheNode(NodeFact);

#[async_trait]
impl KeptChange for OfTheNode {
    fn bytes(&self) -> usize {
        1
    }

    fn of_the_node(&self) -> Option<NodeFact> {
        Some(self.0)
    }

    async fn redo(&self, _db: &Link) -> Result<Redone, QueryFailure> {
        Ok(Redone::There)
    }
}

#[async_trait]
impl KeptChange for Sized {
    fn bytes(&self) -> usize {
        self.0
    }

    async fn redo(&self, _db: &Link) -> Result<Redone, QueryFailure> {
        Ok(Redone::There)
    }
}

fn change(bytes: usize) -> KeptEntry {
    KeptEntry::Change(Arc::new(Sized(bytes)))
}

fn numbers(kept: &Kept) -> Vec<u64> {
    kept.after(0).into_iter().map(|(number, _)| number).collect()
}

#[test]
fn what_is_too_old_or_too_much_is_not_kept() {
    let kept = Kept::new(Duration::from_mins(1), room(100));
    let begin = Instant::now();
    let keep = |second, bytes| kept.keep(1, begin + Duration::from_secs(second), change(bytes)).unwrap();
    for bytes in [40, 40, 40] {
        keep(0, bytes);
    }
    assert_eq!(numbers(&kept), [2, 3]);
    keep(59, 1);
    assert_eq!(numbers(&kept), [2, 3, 4]);
    keep(61, 1);
    assert_eq!(numbers(&kept), [4, 5]);
    keep(62, 101);
    assert_eq!(numbers(&kept), [] as [u64; 0], "it is more than there is room for");
}

#[test]
fn imports_have_a_room_of_their_own() {
    let kept = Kept::new(Duration::from_mins(1), room(100));
    let begin = Instant::now();
    let import = || KeptEntry::Change(Arc::new(OfAnImport(20)));
    kept.keep(1, begin, change(100)).unwrap();
    for _ in 0..4 {
        kept.keep(1, begin, import()).unwrap();
    }
    assert_eq!(numbers(&kept), [1, 4, 5], "the import pushes out only what is its own");
    kept.keep(1, begin, change(90)).unwrap();
    assert_eq!(numbers(&kept), [4, 5, 6]);
    kept.keep(1, begin, import()).unwrap();
    assert_eq!(numbers(&kept), [5, 6, 7], "in the order in which they came");
    kept.age(0, begin + Duration::from_secs(61), None);
    assert_eq!(numbers(&kept), [] as [u64; 0]);
}

/// A node that rests keeps nothing new, but it beats.
#[test]
fn what_is_too_old_is_dropped_although_nothing_is_added() {
    let kept = Kept::new(Duration::from_mins(1), room(100));
    let begin = Instant::now();
    let after = |second| begin + Duration::from_secs(second);
    kept.begin(1);
    kept.renew(begin);
    kept.keep(1, begin, change(1)).unwrap();
    kept.age(1, after(60), None);
    kept.age(2, after(100), None);
    assert_eq!(numbers(&kept), [1], "another server says nothing about it");
    kept.begin(2);
    kept.age(2, after(100), None);
    assert_eq!(numbers(&kept), [1], "it is being repeated");
    kept.renew(after(100));
    kept.age(2, after(160), None);
    assert_eq!(numbers(&kept), [1]);
    kept.age(2, after(161), None);
    assert_eq!(numbers(&kept), [] as [u64; 0]);
}

/// Nothing was acknowledged during a failover, so time alone makes nothing old.
#[test]
fn the_last_moments_before_a_long_failover_are_still_there() {
    let kept = Kept::new(Duration::from_mins(1), room(100));
    let before = Instant::now();
    kept.keep(1, before, change(1)).unwrap();
    kept.begin(2);
    assert_eq!(numbers(&kept), [1]);
    let after = before + Duration::from_hours(1);
    kept.renew(after);
    kept.keep(2, after, change(1)).unwrap();
    assert_eq!(numbers(&kept), [1, 2]);
}

#[test]
fn what_a_former_server_saves_after_the_failover_is_not_acknowledged() {
    let kept = Kept::new(Duration::from_mins(1), room(100));
    let now = Instant::now();
    kept.keep(1, now, change(1)).unwrap();
    kept.begin(2);
    assert_eq!(kept.keep(1, now, change(1)), Err(Superseded));
    kept.keep(2, now, change(1)).unwrap();
    assert_eq!(numbers(&kept), [1, 2]);
}

/// An append is kept as it was sent: its events, which readers share, and its packed bytes.
#[test]
fn the_bytes_of_an_append_are_not_copied() {
    let (agent, turn) = launch(1);
    let mut scribe = Scribe::new(&agent);
    scribe.start(&turn);
    let append = scribe.say(vec![notice("n")]);
    let events = Arc::as_ptr(&append.events);
    let prepared = PreparedAppend::new(append, &Membership::new(None)).unwrap();
    let sent = prepared.sent_bytes();
    let kept = Kept::new(Duration::from_mins(1), room(1 << 20));
    kept.keep(1, Instant::now(), KeptEntry::Append(Arc::new(prepared))).unwrap();
    let KeptEntry::Append(there) = &kept.after(0)[0].1 else { panic!("an append") };
    assert_eq!(Arc::as_ptr(&there.append.events), events);
    assert_eq!(there.sent_bytes(), sent);
}

#[test]
fn what_says_something_about_the_node_is_kept_whatever_comes_after_it() {
    let kept = Kept::new(Duration::from_mins(1), room(100));
    let begin = Instant::now();
    for fact in [NodeFact::Joined, NodeFact::Offers, NodeFact::Offers] {
        kept.keep(1, begin, KeptEntry::Change(Arc::new(OfTheNode(fact)))).unwrap();
    }
    kept.keep(1, begin, change(100)).unwrap();
    kept.keep(1, begin + Duration::from_hours(1), change(100)).unwrap();
    assert_eq!(numbers(&kept), [1, 3, 5], "the newest of each come first");
    assert_eq!(kept.of_the_node().len(), 2);
}

/// A standby that has a beat has all that was acknowledged before it.
#[test]
fn what_was_dropped_and_no_beat_of_the_new_server_has_followed_counts_as_lost() {
    let begin = Instant::now();
    let dropped = || {
        let kept = Kept::new(Duration::from_mins(1), room(0));
        kept.begin(1);
        kept.renew(begin);
        let beat = |beat, newest| kept.age(1, begin, Some(KeptBeat { beat, newest }));
        kept.keep(1, begin, change(1)).unwrap();
        beat(1, 1);
        for _ in 0..2 {
            kept.keep(1, begin, change(1)).unwrap();
        }
        // Sent before the third one was acknowledged.
        beat(2, 2);
        beat(3, 3);
        kept.keep(1, begin, change(1)).unwrap();
        kept
    };
    for (beat, lost) in [(None, 4), (Some(0), 4), (Some(1), 3), (Some(2), 3), (Some(3), 1)] {
        let kept = dropped();
        assert!(!kept.has_dropped_before(1) && kept.has_dropped_before(2));
        assert_eq!(kept.lose_dropped(1, None), 0, "the same server has all of it");
        assert_eq!(kept.lose_dropped(2, beat), lost, "{beat:?}");
        assert_eq!(kept.lose_dropped(2, None), 0, "it was counted");
        kept.age(1, begin, Some(KeptBeat { beat: 4, newest: 4 }));
        assert_eq!(kept.lose_dropped(3, Some(0)), 0);
    }
}
