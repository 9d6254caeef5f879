//! After a failover that has lost the last moments of several nodes: they wait for each other.

use tokenrail_domain::{NodeId, Timestamp, TurnNumber, TurnOutcome};
use tokenrail_ports::testing::samples::{notice, queued_turn};
use tokenrail_ports::{Created, Deletion, Enqueued, IAgentRepository as _, LaunchClaim, NewTurn};
use tokenrail_test_postgres::Replication;

use super::failovers::Pair;
use super::healing::key;
use super::*;

/// A node that waits as long as others repeat something, and no longer.
async fn node(pair: &Pair, folder: u8) -> PostgresStore {
    let mut config = pair.config(folder);
    config.limits.catch_up_least_ms = 0;
    config.limits.catch_up_ms = PATIENCE.as_millis() as u64;
    config.limits.catch_up_pause_ms = 10;
    joined(config).await
}

/// Connects to the new server, and repeats what it can.
async fn heal(store: &PostgresStore) {
    while let Err(error) = store.check().await {
        assert!(error.is_transient(), "{error:?}");
    }
}

/// Creates the `n`th sample agent without a home.
async fn without_a_home(store: &PostgresStore, n: u8) -> (Agent, tokenrail_domain::Turn) {
    let (agent, turn) = launch(n);
    let agent = Agent { home: Some(NodeId::ANY), ..agent };
    assert_eq!(store.create(agent.clone(), turn.clone().into(), None).await.unwrap(), Created::New);
    (agent, turn)
}

/// Many agents of this type.
fn claim_of(kind: &str) -> LaunchClaim {
    LaunchClaim { types: vec![kind.to_owned()], to_run: 9, to_stop: 9 }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_builds_on_another_node_is_repeated_after_it() {
    let pair = Pair::new(Replication::Asynchronous);
    let (one, other) = (node(&pair, 1).await, node(&pair, 2).await);
    let (own, mut of_own) = running(&other, 1).await;
    pair.standby.fall_behind(&pair.primary);
    let (claimed, turn) = without_a_home(&one, 2).await;
    let (idle, _) = launch(3);
    one.create_idle(idle.clone()).await.unwrap();
    assert_eq!(other.claim_launches(claim_of(&claimed.kind)).await.unwrap(), [claimed.id]);
    let epoch = other.claim(claimed.id).await.unwrap().unwrap();
    let mut scribe = Scribe::new(&claimed).at_epoch(epoch);
    other.append(scribe.start(&turn)).await.unwrap();
    other.append(scribe.say(vec![notice("claimed")])).await.unwrap();
    let asked = queued_turn(idle.id, TurnNumber::FIRST, "for an agent of the first node");
    let queued = other.enqueue(asked.into(), 9, None).await.unwrap();
    assert_eq!(queued, Enqueued::New { turn: TurnNumber::FIRST, queued: 1, unarchived: false });
    assert_eq!(other.cancel(idle.id, Timestamp(1)).await.unwrap(), 1);

    pair.fail_over();
    heal(&other).await;
    // What does not build on it goes on.
    save_at_last(&other, &of_own.say(vec![notice("goes on")])).await;
    assert_eq!(everything(&other, &own).await.len(), 2);
    let next = scribe.say(vec![notice("afterwards")]);
    for early in [
        other.append(next.clone()).await,
        other.get(claimed.id).await.map(drop),
        other.open_turns(claimed.id).await.map(drop),
        other.claim(claimed.id).await.map(drop),
        other.cancel(idle.id, Timestamp(1)).await.map(drop),
    ] {
        assert!(matches!(early, Err(StoreError::Busy)), "{early:?}");
    }

    heal(&one).await;
    save_at_last(&other, &next).await;
    assert_eq!(everything(&one, &claimed).await.len(), 3);
    while other.get(claimed.id).await.is_err() {
        tokio::task::yield_now().await;
    }
    assert_eq!(other.get(claimed.id).await.unwrap().unwrap().home, Some(NodeId(2)));
    let stops =
        async || one.open_turns(idle.id).await.unwrap().iter().map(|turn| turn.stop).collect::<Vec<_>>();
    while stops().await != [Some(tokenrail_domain::StopReason::Cancelled)] {
        tokio::task::yield_now().await;
    }
    assert_eq!((one.failovers().lost, other.failovers().lost), (0, 0));
    for node in [&one, &other] {
        node.note_seen(Vec::new()).await.unwrap();
    }
    assert!(!one.is_catching_up().await.unwrap());
    assert!(one.claim_launches(claim_of(&claimed.kind)).await.unwrap().is_empty(), "it runs already");
    other.append(scribe.end(TurnOutcome::Completed)).await.unwrap();
}

/// The first node is lost too, so nobody repeats what the second one builds on.
#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_repeats_is_given_up() {
    let pair = Pair::new(Replication::Asynchronous);
    let one = joined(pair.config(1)).await;
    let mut config = pair.config(2);
    (config.limits.catch_up_ms, config.limits.catch_up_least_ms) = (2000, 0);
    let other = joined(config).await;
    pair.standby.fall_behind(&pair.primary);
    let (agent, turn) = without_a_home(&one, 1).await;
    assert_eq!(other.claim_launches(claim_of(&agent.kind)).await.unwrap(), [agent.id]);
    let epoch = other.claim(agent.id).await.unwrap().unwrap();
    let mut scribe = Scribe::new(&agent).at_epoch(epoch);
    other.append(scribe.start(&turn)).await.unwrap();

    pair.fail_over();
    heal(&other).await;
    let append = scribe.say(vec![notice("of an agent that is lost")]);
    let refused = loop {
        match other.append(append.clone()).await {
            Err(error) if error.is_transient() => tokio::task::yield_now().await,
            answer => break answer,
        }
    };
    assert!(matches!(refused, Err(StoreError::UnknownAgent(_))), "{refused:?}");
    assert!(other.get(agent.id).await.unwrap().is_none());
    assert_eq!(other.failovers().lost, 2, "the claim and the start");
}

/// What a slower node repeats would come too late.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_acts_on_what_is_missing_before_all_nodes_have_repeated_what_they_kept() {
    let pair = Pair::new(Replication::Asynchronous);
    let (slow, fast) = (node(&pair, 1).await, node(&pair, 2).await);
    let lost = node(&pair, 3).await;
    let (orphan, _) = running(&lost, 1).await;
    let pulse = async || fast.nodes().await.unwrap().into_iter().map(|node| node.pulse).collect::<Vec<_>>();
    assert!(fast.declare_lost(NodeId(3), pulse().await[2]).await.unwrap());
    let (purged, _) = launch(2);
    lost.create_idle(purged.clone()).await.unwrap();
    fast.delete(purged.id, Timestamp(1), Deletion::Purge).await.unwrap();
    let (waits, _) = without_a_home(&slow, 3).await;
    let types = || vec![waits.kind.clone()];
    fast.create_idle(launch(4).0).await.unwrap();

    pair.standby_has_everything();
    pair.fail_over();
    heal(&fast).await;
    // This one comes after the failover.
    let new = node(&pair, 4).await;
    assert!(new.failovers().since.is_some());
    for node in [&fast, &new] {
        node.note_seen(Vec::new()).await.unwrap();
        assert!(node.is_catching_up().await.unwrap());
        assert!(node.claim_launches(claim_of(&waits.kind)).await.unwrap().is_empty());
        let early = node.let_all_go(types(), 9).await;
        assert!(matches!(early, Err(StoreError::Busy)), "{early:?}");
        assert!(!node.declare_lost(NodeId(1), pulse().await[0]).await.unwrap());
        assert_eq!(node.take_over(orphan.id).await.unwrap(), None);
        assert!(node.errands(9).await.unwrap().to_purge.is_empty());
    }

    heal(&slow).await;
    assert!(new.is_catching_up().await.unwrap(), "it has not said what it had shown");
    slow.note_seen(Vec::new()).await.unwrap();
    assert!(!new.is_catching_up().await.unwrap());
    assert_eq!(new.claim_launches(claim_of(&waits.kind)).await.unwrap(), [waits.id]);
    assert_eq!(fast.let_all_go(types(), 9).await.unwrap(), 1);
    assert!(new.take_over(orphan.id).await.unwrap().is_some());
    assert_eq!(fast.errands(9).await.unwrap().to_purge, [purged.id]);
    assert!(fast.declare_lost(NodeId(1), pulse().await[0]).await.unwrap());
}

/// Its own number was given to a client already, so no other message may get it.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_waits_until_all_nodes_have_saved_again_what_they_had_queued() {
    let pair = Pair::new(Replication::Asynchronous);
    let (slow, fast) = (node(&pair, 1).await, node(&pair, 2).await);
    let (agent, _) = launch(1);
    slow.create_idle(agent.clone()).await.unwrap();
    pair.standby.fall_behind(&pair.primary);
    let message = |text: &str| queued_turn(agent.id, TurnNumber::FIRST, text).into();
    let acknowledged = slow.enqueue(message("acknowledged"), 9, None).await.unwrap();
    assert!(matches!(acknowledged, Enqueued::New { turn: TurnNumber::FIRST, .. }), "{acknowledged:?}");

    pair.fail_over();
    heal(&fast).await;
    let early = fast.enqueue(message("later"), 9, None).await;
    assert!(matches!(early, Err(StoreError::Busy)), "{early:?}");
    heal(&slow).await;
    let later = fast.enqueue(message("later"), 9, None).await.unwrap();
    assert!(matches!(later, Enqueued::New { turn: TurnNumber(2), .. }), "{later:?}");
    let turns = fast.open_turns(agent.id).await.unwrap();
    let prompts: Vec<&str> = turns.iter().map(|turn| &*turn.prompt).collect();
    assert_eq!(prompts, ["acknowledged", "later"]);
    assert_eq!((slow.failovers().lost, fast.failovers().lost), (0, 0));
}

/// Otherwise, a second launch could take the place of one that was acknowledged.
#[tokio::test(flavor = "multi_thread")]
async fn a_launch_waits_if_another_node_may_have_used_its_key_or_its_conversation() {
    let pair = Pair::new(Replication::Asynchronous);
    let (slow, fast) = (node(&pair, 1).await, node(&pair, 2).await);
    let launches = [(Some("key"), None), (None, Some("chat"))];
    let create = async |store: &PostgresStore, n, (name, chat): (Option<&str>, Option<&str>)| {
        let (agent, turn) = launch(n);
        let agent = Agent { chat: chat.map(str::to_owned), ..agent };
        store.create(agent, turn.into(), name.map(key)).await
    };
    pair.standby.fall_behind(&pair.primary);
    for (n, launch) in (1..).zip(launches) {
        assert_eq!(create(&slow, n, launch).await.unwrap(), Created::New);
    }

    pair.fail_over();
    heal(&fast).await;
    for launch in launches {
        let early = create(&fast, 3, launch).await;
        assert!(matches!(early, Err(StoreError::Busy)), "{early:?}");
    }
    assert_eq!(create(&fast, 4, (None, None)).await.unwrap(), Created::New, "it takes nobody's place");
    heal(&slow).await;
    let [first, second] = [1, 2].map(|n| launch(n).0.id);
    assert_eq!(create(&fast, 3, launches[0]).await.unwrap(), Created::Again(first));
    assert_eq!(create(&fast, 3, launches[1]).await.unwrap(), Created::ChatTaken(second));
    assert_eq!((slow.failovers().lost, fast.failovers().lost), (0, 0));
}

/// A node that never comes back holds up no message for longer than it holds up anything else.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_does_not_wait_for_ever_for_a_node_that_is_silent() {
    let pair = Pair::new(Replication::Asynchronous);
    let _silent = node(&pair, 1).await;
    let mut config = pair.config(2);
    (config.limits.catch_up_ms, config.limits.catch_up_least_ms) = (2000, 0);
    let store = joined(config).await;
    let (agent, _) = launch(1);
    store.create_idle(agent.clone()).await.unwrap();
    pair.standby_has_everything();
    pair.fail_over();
    heal(&store).await;
    let started = std::time::Instant::now();
    let queued = loop {
        match store.enqueue(queued_turn(agent.id, TurnNumber::FIRST, "p").into(), 9, None).await {
            Err(error) => assert!(error.is_transient() && started.elapsed() < PATIENCE, "{error:?}"),
            Ok(queued) => break queued,
        }
    };
    assert!(matches!(queued, Enqueued::New { turn: TurnNumber::FIRST, .. }), "{queued:?}");
}

/// The failover has lost the start of a turn, and the node that could save it again is dead.
#[tokio::test(flavor = "multi_thread")]
async fn it_is_known_which_turns_of_a_lost_node_may_have_begun() {
    let pair = Pair::new(Replication::Asynchronous);
    let mut config = pair.config(2);
    (config.limits.catch_up_ms, config.limits.catch_up_least_ms) = (2000, 0);
    let (dead, other) = (node(&pair, 1).await, joined(config).await);
    let (agent, turn) = launch(1);
    assert_eq!(dead.create(agent.clone(), turn.clone().into(), None).await.unwrap(), Created::New);
    let lost_in_time = node(&pair, 3).await;
    let (of_another, _) = launch(2);
    lost_in_time.create_idle(of_another.clone()).await.unwrap();
    pair.standby.fall_behind(&pair.primary);
    dead.append(Scribe::new(&agent).start(&turn)).await.unwrap();

    pair.fail_over();
    heal(&lost_in_time).await;
    heal(&other).await;
    assert!(!other.may_have_begun(agent.id).await.unwrap(), "it may still save it again");
    for id in [NodeId(1), NodeId(3)] {
        let nodes = other.nodes().await.unwrap();
        let seen = nodes.into_iter().find(|node| node.id == id).unwrap().pulse;
        while !other.declare_lost(id, seen).await.unwrap() {}
    }
    assert!(other.take_over(agent.id).await.unwrap().is_some());
    let turns = other.open_turns(agent.id).await.unwrap();
    assert_eq!(turns[0].state, tokenrail_domain::TurnState::Queued);
    assert!(other.may_have_begun(agent.id).await.unwrap());
    assert!(!other.may_have_begun(of_another.id).await.unwrap(), "its node has repeated everything");
    let _back = node(&pair, 1).await;
    assert!(!other.may_have_begun(agent.id).await.unwrap());
}

/// The node was dead by then. A message that is saved again may have begun there before it was lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_was_queued_after_the_failover_has_not_begun() {
    let pair = Pair::new(Replication::Asynchronous);
    let mut config = pair.config(2);
    (config.limits.catch_up_ms, config.limits.catch_up_least_ms) = (2000, 0);
    let (dead, other) = (node(&pair, 1).await, joined(config).await);
    let [repeated, new, shown, of_an_older_program] = [1, 2, 3, 4].map(|n| launch(n).0);
    for agent in [&repeated, &new, &shown, &of_an_older_program] {
        dead.create_idle(agent.clone()).await.unwrap();
    }
    pair.standby.fall_behind(&pair.primary);
    let message = |agent: &Agent, turn| NewTurn::from(queued_turn(agent.id, TurnNumber(turn), "p"));
    other.enqueue(message(&repeated, 1), 9, None).await.unwrap();

    pair.fail_over();
    heal(&other).await;
    // It has shown events of these agents that are lost.
    let seen = [&shown, &of_an_older_program].map(|agent| (agent.id, Sequence(5)));
    other.note_seen(seen.to_vec()).await.unwrap();
    for (agent, turn) in [(&new, 1), (&shown, 1), (&of_an_older_program, 1), (&repeated, 2)] {
        while let Err(error) = other.enqueue(message(agent, turn), 9, None).await {
            assert!(error.is_transient(), "{error:?}");
        }
    }
    pair.standby.sql_in(&pair.database, &queued_by_an_older_program(&of_an_older_program));
    let pulse = other.nodes().await.unwrap()[0].pulse;
    while !other.declare_lost(NodeId(1), pulse).await.unwrap() {}
    let may_have_begun = async |agent: &Agent| other.may_have_begun(agent.id).await.unwrap();
    assert!(!may_have_begun(&new).await);
    assert!(!may_have_begun(&shown).await, "only events of earlier turns are lost");
    assert!(may_have_begun(&of_an_older_program).await, "of its turn, nothing else is known");
    assert!(may_have_begun(&repeated).await);

    let epoch = other.take_over(repeated.id).await.unwrap().unwrap();
    let mut scribe = Scribe::new(&repeated).at_epoch(epoch);
    let turns = other.open_turns(repeated.id).await.unwrap();
    other.append(scribe.start(&turns[0])).await.unwrap();
    other.append(scribe.end(TurnOutcome::Interrupted)).await.unwrap();
    assert_eq!(other.open_turns(repeated.id).await.unwrap().len(), 1);
    assert!(!may_have_begun(&repeated).await, "the other turn came after the failover");
}

/// Makes it as if a program before schema 9 had queued the turns of this agent.
fn queued_by_an_older_program(agent: &Agent) -> String {
    let id = agent.id.as_uuid();
    format!(
        "UPDATE turns SET queued_on = NULL FROM agents WHERE turns.agent = agents.key AND agents.id = '{id}'"
    )
}
