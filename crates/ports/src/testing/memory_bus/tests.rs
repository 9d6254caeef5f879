use std::future::{Ready, ready};

use tokenrail_domain::{AgentId, NodeId, Sequence};

use super::*;
use crate::testing::contract::bus::listening;
use crate::testing::samples::launch;

fn fresh() -> Ready<([MemoryBus; 2], ())> {
    let one = MemoryBus::new(7);
    let other = one.another();
    ready(([one, other], ()))
}

crate::bus_contract!(fresh);

async fn two() -> (MemoryBus, MemoryBus) {
    let ([one, other], ()) = fresh().await;
    listening(&one).await;
    listening(&other).await;
    (one, other)
}

fn agent(n: u8) -> AgentId {
    launch(n).0.id
}

/// What the bus hears until nothing more comes.
async fn everything(bus: &MemoryBus) -> Vec<Heard> {
    let mut heard = Vec::new();
    while let Ok(next) = tokio::time::timeout(Duration::from_hours(1), bus.heard()).await {
        heard.push(next);
    }
    heard
}

fn hints(all: &[Hint]) -> Heard {
    Heard::Hints(all.to_vec())
}

#[tokio::test(start_paused = true)]
async fn planned_faults_strike_once_and_in_order() {
    let (one, other) = two().await;
    let [lost, doubled, late, after] = [1, 2, 3, 4].map(|n| Hint::Changed(agent(n)));
    one.fail_next_hint(HintFault::Lost);
    one.fail_next_hint(HintFault::Doubled);
    one.fail_next_hint(HintFault::Late(Duration::from_secs(1)));
    for hint in [lost, doubled, late, after] {
        one.send_hint(hint);
    }
    assert_eq!(everything(&other).await, [hints(&[doubled, after]), hints(&[doubled]), hints(&[late])]);
}

#[tokio::test(start_paused = true)]
async fn late_hints_come_in_the_order_of_their_times() {
    let (one, other) = two().await;
    let started = Instant::now();
    for (n, ms) in [(1, 30), (2, 10), (3, 20)] {
        one.fail_next_hint(HintFault::Late(Duration::from_millis(ms)));
        one.send_hint(Hint::Created(agent(n)));
    }
    let mut came = Vec::new();
    while came.len() < 3 {
        came.push(other.heard().await);
        assert!(started.elapsed() <= Duration::from_millis(31));
    }
    assert_eq!(came, [2, 3, 1].map(|n| hints(&[Hint::Created(agent(n))])));
}

#[tokio::test(start_paused = true)]
async fn a_broken_bus_loses_what_is_sent_and_says_so() {
    let (one, other) = two().await;
    one.send_hint(Hint::Created(agent(1)));
    other.break_off();
    assert!(one.is_working() && !other.is_working());
    one.send_hint(Hint::Created(agent(2)));
    other.send_hint(Hint::Created(agent(3)));
    assert_eq!((everything(&one).await, everything(&other).await), (vec![], vec![]));
    other.repair();
    assert!(other.is_working());
    one.send_hint(Hint::Created(agent(4)));
    assert_eq!(
        (everything(&one).await, everything(&other).await),
        (vec![Heard::Missed], vec![Heard::Missed])
    );
    one.send_hint(Hint::Created(agent(5)));
    assert_eq!(everything(&other).await, [hints(&[Hint::Created(agent(5))])]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_has_left_disturbs_nobody() {
    let (one, other) = two().await;
    let third = one.another();
    listening(&third).await;
    drop(other);
    one.send_hint(Hint::Letter(NodeId(3)));
    assert_eq!(everything(&third).await, [hints(&[Hint::Letter(NodeId(3))])]);
}

/// The same seed goes the same way, and some hints of each kind go wrong.
#[tokio::test(start_paused = true)]
async fn faults_follow_from_the_seed() {
    let run = async |seed| {
        let one = MemoryBus::new(seed);
        let other = one.another();
        listening(&other).await;
        one.set_faults(BusFaults { lost: 100, doubled: 100, late: 100, late_max: Duration::from_secs(1) });
        let began = Instant::now();
        let mut heard = Vec::new();
        for head in 1..200 {
            one.send_hint(Hint::Head { agent: agent(1), head: Sequence(head) });
            let next = tokio::time::timeout(Duration::from_millis(10), other.heard()).await;
            heard.push((began.elapsed(), next.ok()));
        }
        heard.extend(everything(&other).await.into_iter().map(|heard| (began.elapsed(), Some(heard))));
        heard
    };
    let heard = run(3).await;
    assert_eq!(heard, run(3).await);
    assert_ne!(heard, run(4).await);
    assert!(heard.iter().any(|(_, heard)| heard.is_none()), "some are lost");
}
