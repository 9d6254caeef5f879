use tokenrail_domain::Timestamp;

use super::*;

fn agent(n: u8) -> AgentId {
    AgentId::new(Timestamp(1), [n; 10])
}

#[test]
fn each_read_begins_after_the_agent_with_which_the_last_one_ended() {
    let wanted = BTreeMap::from([1, 3, 5].map(|n| (agent(n), Sequence(9))));
    let turns = |last: Option<u8>| in_turn(&wanted, last.map(agent)).collect::<Vec<_>>();
    assert_eq!(turns(None), [1, 3, 5].map(agent));
    assert_eq!(turns(Some(1)), [3, 5, 1].map(agent));
    assert_eq!(turns(Some(4)), [5, 1, 3].map(agent));
    assert_eq!(turns(Some(5)), [1, 3, 5].map(agent));
}
