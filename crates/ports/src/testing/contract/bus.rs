//! What every bus between nodes promises: [`IBus`].
//!
//! A listener that is new hears [`Heard::Missed`] first, because it does not know what was sent before.

use std::collections::BTreeMap;
use std::time::Duration;

use tokenrail_domain::{AgentId, NodeId, Sequence, Timestamp};

use crate::{Heard, Hint, IBus};

/// How long a test waits for what must happen. It is far longer than anything takes: it only ends a test that hangs.
const PATIENCE: Duration = Duration::from_mins(1);

/// Defines one test for each promise. `$fresh` is a function that returns a future of two buses of one store, and a
/// guard that must live as long as they.
#[macro_export]
macro_rules! bus_contract {
    ($fresh:path) => {
        $crate::bus_contract! { $fresh:
            what_one_sends_the_other_hears
            own_hints_are_not_heard
            of_the_heads_of_an_agent_the_highest_is_heard
            hints_of_many_agents_are_heard_once_each
            what_is_sent_again_is_heard_again
            a_flood_is_heard_as_missed_and_then_hints_arrive_again
            a_wait_that_is_dropped_loses_nothing
        }
    };
    ($fresh:path: $($promise:ident)*) => {
        $(
            #[tokio::test]
            async fn $promise() {
                let ([one, other], _guard) = $fresh().await;
                $crate::testing::contract::bus::listening(&one).await;
                $crate::testing::contract::bus::listening(&other).await;
                $crate::testing::contract::bus::$promise(&one, &other).await;
            }
        )*
    };
}

/// Waits until the bus listens and works.
pub async fn listening(bus: &impl IBus) {
    assert_eq!(heard(bus).await, Heard::Missed);
    working(bus, true).await;
}

/// Waits until the bus says that it works, or that it does not.
pub async fn working(bus: &impl IBus, works: bool) {
    let wait = async {
        while bus.is_working() != works {
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, wait).await;
    assert!(waited.is_ok(), "it does not say that it works: {works}");
}

/// What is heard next.
pub async fn heard(bus: &impl IBus) -> Heard {
    let heard = tokio::time::timeout(PATIENCE, bus.heard()).await;
    assert!(heard.is_ok(), "nothing is heard");
    heard.unwrap_or(Heard::Missed)
}

/// What is heard up to and with this hint, which is sent last.
pub async fn heard_up_to(bus: &impl IBus, last: Hint) -> Vec<Hint> {
    let mut all = Vec::new();
    while !all.contains(&last) {
        match heard(bus).await {
            Heard::Hints(hints) => {
                assert!(!hints.is_empty(), "nothing was heard");
                all.extend(hints);
            }
            Heard::Missed => panic!("hints were missed after {all:?}"),
        }
    }
    all
}

/// The `n`th agent.
pub fn agent(n: u32) -> AgentId {
    let mut random = [0; 10];
    random[6..].copy_from_slice(&n.to_be_bytes());
    AgentId::new(Timestamp(1_795_299_000_000), random)
}

fn head(n: u32, head: u64) -> Hint {
    Hint::Head { agent: agent(n), head: Sequence(head) }
}

/// A hint by which a test knows that all before it has arrived.
const LAST: Hint = Hint::Letter(NodeId(u64::MAX));

pub async fn what_one_sends_the_other_hears(one: &impl IBus, other: &impl IBus) {
    let hints = [
        head(1, 345),
        head(2, u64::MAX),
        Hint::Created(agent(1)),
        Hint::Changed(agent(1)),
        Hint::Deleted(agent(2)),
        Hint::Errand(NodeId(7)),
        Hint::Letter(NodeId(u64::MAX)),
    ];
    for hint in hints {
        one.send_hint(hint);
        assert_eq!(heard(other).await, Heard::Hints(vec![hint]));
        other.send_hint(hint);
        assert_eq!(heard(one).await, Heard::Hints(vec![hint]));
    }
    for hint in hints {
        one.send_hint(hint);
    }
    assert_eq!(heard_up_to(other, LAST).await, hints, "in their order");
}

pub async fn own_hints_are_not_heard(one: &impl IBus, other: &impl IBus) {
    for n in 0..20 {
        one.send_hint(head(n, 1));
        one.send_hint(Hint::Created(agent(n)));
        // It was sent, so that what comes after it is heard after it.
        heard_up_to(other, Hint::Created(agent(n))).await;
        other.send_hint(Hint::Errand(NodeId(u64::from(n))));
        assert_eq!(heard(one).await, Heard::Hints(vec![Hint::Errand(NodeId(u64::from(n)))]));
    }
}

pub async fn of_the_heads_of_an_agent_the_highest_is_heard(one: &impl IBus, other: &impl IBus) {
    for up_to in 1..1000 {
        one.send_hint(head(1, up_to));
        one.send_hint(head(2, 1000 - up_to));
    }
    one.send_hint(LAST);
    assert_eq!(heard_up_to(other, LAST).await, [head(1, 999), head(2, 999), LAST]);
}

pub async fn hints_of_many_agents_are_heard_once_each(one: &impl IBus, other: &impl IBus) {
    for round in 1..4 {
        let mut expected = Vec::new();
        for n in 0..400 {
            expected.push(head(n, round));
            expected.push(Hint::Changed(agent(n)));
        }
        for hint in expected.iter().chain(&expected) {
            one.send_hint(*hint);
        }
        one.send_hint(LAST);
        expected.push(LAST);
        assert_eq!(heard_up_to(other, LAST).await, expected);
    }
    one.send_hint(LAST);
    assert_eq!(heard(other).await, Heard::Hints(vec![LAST]), "nothing of it is heard later");
}

pub async fn what_is_sent_again_is_heard_again(one: &impl IBus, other: &impl IBus) {
    for _ in 0..20 {
        one.send_hint(Hint::Changed(agent(1)));
        assert_eq!(heard(other).await, Heard::Hints(vec![Hint::Changed(agent(1))]));
    }
}

pub async fn a_flood_is_heard_as_missed_and_then_hints_arrive_again(one: &impl IBus, other: &impl IBus) {
    let agents = 100_000;
    for round in 0..2 {
        for n in 0..agents {
            one.send_hint(head(n, 1));
        }
        let mut all = BTreeMap::new();
        loop {
            match heard(other).await {
                Heard::Missed => break,
                Heard::Hints(hints) => {
                    for hint in hints {
                        let Hint::Head { agent, head } = hint else { panic!("{hint:?} was not sent") };
                        assert!(all.insert(agent, head).is_none(), "{hint:?} twice");
                    }
                }
            }
            assert!(all.len() < agents as usize, "the bus has no bound");
        }
        let after = Hint::Created(agent(agents + round));
        one.send_hint(after);
        assert_eq!(heard(other).await, Heard::Hints(vec![after]), "missed is heard once");
    }
}

pub async fn a_wait_that_is_dropped_loses_nothing(one: &impl IBus, other: &impl IBus) {
    for n in 0..50 {
        one.send_hint(head(n, 1));
        let mut next = None;
        while next.is_none() {
            tokio::select! {
                biased;
                heard = other.heard() => next = Some(heard),
                () = tokio::task::yield_now() => {}
            }
        }
        assert_eq!(next, Some(Heard::Hints(vec![head(n, 1)])));
    }
}
