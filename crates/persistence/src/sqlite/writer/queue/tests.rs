use rusqlite::Connection;
use tokenrail_domain::Timestamp;
use tokenrail_ports::StoreError;

use super::*;
use crate::sqlite::database::reserve::ReserveUse;

const FLOODING: u8 = 1;
const QUIET: u8 = 2;
const NOBODY: u8 = 0;
const BACKGROUND: u8 = 3;

/// So many bytes, of that agent.
struct Sized(usize, u8);

impl Task for Sized {
    fn bytes(&self) -> usize {
        self.0
    }
    fn agent(&self) -> Option<AgentId> {
        (![NOBODY, BACKGROUND].contains(&self.1)).then(|| agent(self.1))
    }
    fn is_in_background(&self) -> bool {
        self.1 == BACKGROUND
    }
    fn empties_log(&self) -> bool {
        false
    }
    fn reserve_use(&self) -> ReserveUse {
        ReserveUse::None
    }
    fn run(&mut self, _: &Connection) -> Result<(), StoreError> {
        Ok(())
    }
    fn answer(self: Box<Self>, _: Result<(), StoreError>) {}
}

fn agent(number: u8) -> AgentId {
    AgentId::new(Timestamp(0), [number; 10])
}

/// One of 10 bytes or more is large; a transaction takes 30 or three, and five may wait. The flooding agent has
/// just made another large write.
fn queue(sizes: &[usize]) -> Queue {
    let limits = SqliteLimits {
        flood_bytes: 10,
        commit_max_bytes: 30,
        commit_max_jobs: 3,
        queued_commands: 5,
        flood_yield_ms: 3_600_000,
        ..SqliteLimits::default()
    };
    let mut queue = Queue::new(limits);
    queue.large_at.insert(agent(FLOODING), Instant::now());
    for &bytes in sizes {
        queue.add(WriterOrder::Task(Box::new(Sized(bytes, FLOODING))));
    }
    queue
}

fn next(queue: &mut Queue, holds: bool) -> Vec<usize> {
    queue.next(holds).tasks.iter().map(|task| task.bytes()).collect()
}

#[test]
fn small_and_large_writes_take_turns() {
    let mut queue = queue(&[20, 20, 20, 1, 2]);
    assert_eq!(next(&mut queue, false), [1, 2]);
    queue.add(WriterOrder::Task(Box::new(Sized(3, FLOODING))));
    assert_eq!(next(&mut queue, false), [20, 20], "who says little does not keep a flood waiting either");
    assert_eq!(next(&mut queue, false), [3]);
    assert_eq!(next(&mut queue, false), [20]);
    assert!(queue.is_empty() && next(&mut queue, false).is_empty());
}

#[test]
fn a_transaction_takes_so_many_in_their_order() {
    let mut queue = queue(&[1, 2, 3, 4]);
    assert_eq!(next(&mut queue, false), [1, 2, 3]);
    assert_eq!(next(&mut queue, false), [4]);
}

#[test]
fn large_writes_are_held_while_others_go_on() {
    let mut queue = queue(&[20, 1]);
    let soon = Instant::now() + Duration::from_mins(1);
    assert_eq!(queue.wait(Some(soon)), None);
    assert_eq!(next(&mut queue, true), [1]);
    assert_eq!(queue.wait(Some(soon)), Some(Wait::Until(soon)));
    assert!(next(&mut queue, true).is_empty());
    assert_eq!(queue.wait(None), None);
    assert_eq!(next(&mut queue, false), [20]);
    assert_eq!(queue.wait(Some(soon)), Some(Wait::ForOrders));
}

#[test]
fn a_flood_alone_does_not_rest() {
    let mut queue = queue(&[1, 20, 20]);
    queue.large_is_next = true;
    let group = queue.next(false);
    queue.written(&group, Duration::from_mins(1));
    assert_eq!(next(&mut queue, false), [1]);
    queue.add(WriterOrder::Task(Box::new(Sized(20, FLOODING))));
    assert_eq!((queue.wait(None), next(&mut queue, false)), (None, vec![20]));
}

#[test]
fn a_single_large_write_goes_with_the_small_ones() {
    let mut queue = queue(&[20, 1]);
    queue.add(WriterOrder::Task(Box::new(Sized(20, QUIET))));
    assert_eq!(next(&mut queue, true), [1, 20]);
    queue.add(WriterOrder::Task(Box::new(Sized(20, QUIET))));
    assert!(next(&mut queue, true).is_empty(), "two in a row are a flood");
}

#[test]
fn a_command_that_fills_a_transaction_does_not_hold_up_the_output_of_agents() {
    let mut queue = queue(&[]);
    queue.add(WriterOrder::Task(Box::new(Sized(30, NOBODY))));
    queue.add(WriterOrder::Task(Box::new(Sized(1, QUIET))));
    assert_eq!(next(&mut queue, false), [1]);
    queue.add(WriterOrder::Task(Box::new(Sized(2, QUIET))));
    assert_eq!(next(&mut queue, false), [30]);
    assert_eq!(next(&mut queue, false), [2]);
    queue.add(WriterOrder::Task(Box::new(Sized(29, NOBODY))));
    queue.add(WriterOrder::Task(Box::new(Sized(1, QUIET))));
    assert_eq!(next(&mut queue, false), [29, 1]);
}

/// However small they are.
#[test]
fn writes_in_the_background_go_alone_and_pause_while_agents_write() {
    let mut queue = queue(&[]);
    let pack = |queue: &mut Queue| queue.add(WriterOrder::Task(Box::new(Sized(1, BACKGROUND))));
    pack(&mut queue);
    queue.add(WriterOrder::Task(Box::new(Sized(2, QUIET))));
    assert_eq!(next(&mut queue, false), [2]);
    let group = queue.next(false);
    assert_eq!(group.tasks.len(), 1);
    queue.written(&group, Duration::from_mins(1));
    pack(&mut queue);
    assert!(matches!(queue.wait(None), Some(Wait::Until(_))));
    assert!(next(&mut queue, false).is_empty());
    queue.stop = true;
    assert_eq!(next(&mut queue, false), [1], "a store that closes does not wait for it");
}

#[test]
fn two_floods_and_a_write_in_the_background_are_no_backlog() {
    let mut queue = queue(&[10]);
    queue.large_at.insert(agent(10), Instant::now());
    queue.add(WriterOrder::Task(Box::new(Sized(10, 10))));
    queue.add(WriterOrder::Task(Box::new(Sized(1, BACKGROUND))));
    queue.add(WriterOrder::Task(Box::new(Sized(3, QUIET))));
    assert_eq!(next(&mut queue, false), [3]);
    let group = queue.next(false);
    assert_eq!(group.tasks.len(), 1);
    queue.written(&group, Duration::from_mins(1));
    assert!(queue.pauses_until.is_some());
}

#[test]
fn a_backlog_of_many_shares_transactions_and_does_not_rest() {
    let mut queue = queue(&[10]);
    for number in 10..12 {
        queue.large_at.insert(agent(number), Instant::now());
        queue.add(WriterOrder::Task(Box::new(Sized(10, number))));
    }
    queue.add(WriterOrder::Task(Box::new(Sized(3, QUIET))));
    assert_eq!(next(&mut queue, false), [3]);
    let group = queue.next(false);
    assert_eq!(group.tasks.len(), 3);
    queue.written(&group, Duration::from_mins(1));
    assert_eq!(queue.pauses_until, None);
}

#[test]
fn a_flood_pauses_while_others_write() {
    let long = Duration::from_mins(1);
    let mut queue = queue(&[20, 20]);
    queue.add(WriterOrder::Task(Box::new(Sized(3, QUIET))));
    assert_eq!(next(&mut queue, false), [3]);
    let group = queue.next(false);
    assert_eq!(group.tasks.len(), 1, "others wait for no more than one");
    queue.written(&group, long);
    assert!(matches!(queue.wait(None), Some(Wait::Until(until)) if Instant::now() + long < until));
    queue.add(WriterOrder::Task(Box::new(Sized(4, QUIET))));
    assert_eq!((next(&mut queue, false), next(&mut queue, false)), (vec![4], vec![]));
    queue.pauses_until = Some(Instant::now());
    assert_eq!((queue.wait(None), next(&mut queue, false)), (None, vec![20]));
}

#[test]
fn nobody_is_held_where_no_more_can_queue_or_the_store_closes() {
    let mut full = queue(&[20; 5]);
    assert_eq!(next(&mut full, true), [20, 20]);
    let mut stopped = queue(&[20]);
    stopped.add(WriterOrder::Stop);
    assert_eq!(next(&mut stopped, true), [20]);
}

#[test]
fn more_is_expected_if_two_agents_write_at_the_same_moment() {
    let write = |queue: &mut Queue, bytes, by| queue.add(WriterOrder::Task(Box::new(Sized(bytes, by))));
    let mut queue = queue(&[]);
    queue.limits.gather_us = 3_600_000_000;
    for (bytes, by) in [(1, QUIET), (1, QUIET), (1, NOBODY), (20, FLOODING)] {
        write(&mut queue, bytes, by);
        assert!(!queue.expects_more(), "only one agent has made small writes");
    }
    write(&mut queue, 1, FLOODING);
    assert!(queue.expects_more());
    queue.limits.gather_us = 0;
    assert!(!queue.expects_more(), "both have written before");
}
