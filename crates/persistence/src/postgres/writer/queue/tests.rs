use tokenrail_domain::AgentId;
use tokenrail_ports::testing::samples::{Scribe, launch, notice};
use tokio::sync::oneshot;

use super::*;
use crate::postgres::membership::Membership;
use crate::postgres::statements::append::PreparedAppend;

fn order(scribe: &mut Scribe) -> WriterOrder {
    let append = scribe.say(vec![notice("n")]);
    let prepared = PreparedAppend::new(append, &Membership::new(None)).unwrap();
    let (reply, _) = oneshot::channel();
    WriterOrder::Append(Box::new(WaitingAppend { prepared, reply }))
}

fn places(group: &[WaitingAppend]) -> Vec<(AgentId, u64)> {
    let place = |waiting: &WaitingAppend| {
        let append = &waiting.prepared.append;
        (append.agent, append.events[0].sequence.0)
    };
    group.iter().map(place).collect()
}

#[test]
fn a_group_has_the_oldest_append_of_each_agent() {
    let mut queue = Queue::new(&PostgresLimits { statement_agents: 2, ..PostgresLimits::default() });
    let agents = [1, 2, 3].map(|n| launch(n).0);
    let mut scribes = agents.each_ref().map(Scribe::new);
    for at in [0, 0, 1, 2, 2] {
        queue.add(order(&mut scribes[at]));
    }
    let [one, two, three] = agents.map(|agent| agent.id);
    assert_eq!(places(&queue.next()), [(one, 1), (two, 1)]);
    assert_eq!(places(&queue.next()), [(one, 2), (three, 1)]);
    assert_eq!(places(&queue.next()), [(three, 2)]);
    assert!(queue.is_empty());
}

#[test]
fn a_large_append_goes_alone_and_is_not_held_up() {
    let mut queue = Queue::new(&PostgresLimits { statement_bytes: 1, ..PostgresLimits::default() });
    let agents = [1, 2].map(|n| launch(n).0);
    for agent in &agents {
        queue.add(order(&mut Scribe::new(agent)));
    }
    let [one, two] = agents.map(|agent| agent.id);
    assert_eq!(places(&queue.next()), [(one, 1)]);
    assert_eq!(places(&queue.next()), [(two, 1)]);
}
