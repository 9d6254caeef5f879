//! More hints than anybody can use.

use std::collections::BTreeMap;
use std::sync::Mutex;

use tokenrail_domain::Sequence;

use super::*;
use crate::postgres::database::driver::Ear;
use crate::postgres::database::settings::Purpose;

fn head(n: u32, head: u64) -> Hint {
    Hint::Head { agent: agent(n), head: Sequence(head) }
}

fn ring_heads(bus: &PostgresBus, agents: u32, up_to: u64) {
    for n in 0..agents {
        bus.send_hint(head(n, up_to));
    }
}

const LAST: Hint = Hint::Letter(tokenrail_domain::NodeId(9));

#[tokio::test]
async fn a_hundred_thousand_heads_go_in_a_few_payloads_within_the_bound() {
    let database = tokenrail_test_postgres::database();
    let [one, other] = two(&database, patient()).await;
    let payloads = Arc::new(Mutex::new(Vec::new()));
    let collects = Arc::clone(&payloads);
    let ear: Ear =
        Arc::new(move |notification| collects.lock().unwrap().push(notification.payload().to_owned()));
    let connector = connector(config(&database, patient()));
    let link = connector.connect_to_hear(Purpose::WithoutStandby, ear).await.unwrap();
    link.batch(&format!("LISTEN {CHANNEL}")).await.unwrap();
    for up_to in 1..=100 {
        for n in 0..1000 {
            one.send_hint(head(n, up_to));
        }
    }
    one.send_hint(LAST);
    let heard = heard_up_to(&other, LAST).await;
    let mut expected: Vec<Hint> = (0..1000).map(|n| head(n, 100)).collect();
    expected.push(LAST);
    assert_eq!(heard, expected, "each agent's highest head, once, in order");
    // It is delivered in its order, so everything before it has arrived then.
    database.sql(&format!("NOTIFY {CHANNEL}, 'end'"));
    while payloads.lock().unwrap().last().is_none_or(|last: &String| last != "end") {
        tokio::task::yield_now().await;
    }
    let payloads = payloads.lock().unwrap();
    let with_heads = payloads.iter().filter(|payload| payload.contains(" h"));
    let lengths: Vec<usize> = with_heads.map(String::len).collect();
    assert!(lengths.iter().all(|bytes| *bytes <= 7900), "{lengths:?}");
    assert!(1 < lengths.len() && lengths.len() < 10, "{lengths:?}");
}

/// The threads send while the other bus takes what has come so far.
#[tokio::test(flavor = "multi_thread")]
async fn the_last_head_of_each_agent_is_heard_however_many_ring() {
    const THREADS: u32 = 4;
    const AGENTS: u32 = 50;
    const HEADS: u64 = 500;
    let database = tokenrail_test_postgres::database();
    let [one, other] = two(&database, patient()).await;
    let one = Arc::new(one);
    let mut ringing = JoinSet::new();
    for thread in 0..THREADS {
        let one = Arc::clone(&one);
        ringing.spawn_blocking(move || {
            for up_to in 1..=HEADS {
                for n in 0..AGENTS {
                    one.send_hint(head(thread * AGENTS + n, up_to));
                }
            }
        });
    }
    let mut heads = BTreeMap::new();
    while heads.values().filter(|head| **head == Sequence(HEADS)).count() < (THREADS * AGENTS) as usize {
        let Heard::Hints(hints) = heard(&other).await else { panic!("there are not too many") };
        for hint in hints {
            let Hint::Head { agent, head } = hint else { panic!("{hint:?}") };
            let before = heads.insert(agent, head);
            assert!(before.is_none_or(|before| before < head), "{hint:?} after {before:?}");
        }
    }
}

#[tokio::test]
async fn hints_that_nobody_takes_become_missed() {
    let database = tokenrail_test_postgres::database();
    let few = PostgresLimits { hints: 8, ..patient() };
    let one = PostgresBus::start(&connector(config(&database, patient())));
    let slow = PostgresBus::start(&connector(config(&database, few)));
    listening(&one).await;
    listening(&slow).await;
    ring_heads(&one, 8, 1);
    assert_eq!(heard(&slow).await, Heard::Hints((0..8).map(|n| head(n, 1)).collect()), "it has room");
    ring_heads(&one, 9, 2);
    assert_eq!(heard(&slow).await, Heard::Missed);
    one.send_hint(head(1, 3));
    assert_eq!(heard(&slow).await, Heard::Hints(vec![head(1, 3)]));
    // Too many to be kept until they are sent.
    ring_heads(&slow, 9, 1);
    assert_eq!(heard(&one).await, Heard::Missed);
}

#[tokio::test]
async fn the_more_nodes_there_are_the_longer_hints_are_gathered() {
    let database = tokenrail_test_postgres::database();
    let bus = PostgresBus::start(&connector(config(&database, patient())));
    let pause_ms = |nodes| {
        bus.set_nodes(nodes);
        bus.board.outgoing.pause().as_millis()
    };
    assert_eq!(bus.board.outgoing.pause().as_millis(), 20, "nobody has said how many there are");
    assert_eq!([0, 1, 2, 3, 10].map(pause_ms), [5, 5, 5, 6, 20]);
}
