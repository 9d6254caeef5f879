//! Several servers on one store: who is a node, who is alive, and who is not.

use tokenrail_domain::{AgentId, NodeId, TurnOutcome};

use super::{launched, running, saved};
use crate::testing::samples::{launch, notice};
use crate::{
    Epoch, IAgentRepository, IArchive, ICredentials, IInbox, IJournal, INodes, Node, NodeState, Pulse,
    StoreError,
};

/// A store with all its ports.
pub trait SharedStore: IJournal + IAgentRepository + IArchive + INodes + IInbox + ICredentials {}

impl<S: IJournal + IAgentRepository + IArchive + INodes + IInbox + ICredentials> SharedStore for S {}

/// Four servers on one empty store. None of them has joined.
pub struct Servers<S> {
    pub one: S,
    /// Another server with the data folder of `one`.
    pub twin: S,
    pub other: S,
    pub third: S,
}

impl<S: SharedStore> Servers<S> {
    /// Joins as `one` and `other`.
    pub(super) async fn two(&self) -> (NodeId, NodeId) {
        (self.one.join().await.unwrap(), self.other.join().await.unwrap())
    }
}

/// Defines one test for each promise of a store that several servers share. `$fresh` is a function that returns a
/// future of [`Servers`](crate::testing::contract::nodes::Servers), and a guard that must live as long as they do.
#[macro_export]
macro_rules! nodes_contract {
    ($fresh:path) => {
        $crate::nodes_contract! { $fresh: nodes
            a_node_keeps_its_number
            a_join_fences_only_what_the_node_itself_has_sent
            a_server_that_joins_as_the_same_node_fences_the_older_one
            a_beat_counts_and_shows_all_nodes
            all_nodes_have_the_same_time
            a_node_that_was_lost_or_has_left_does_not_beat_until_it_joins
            a_node_is_lost_only_with_the_pulse_that_was_seen
            a_node_that_is_away_can_be_lost
            only_a_node_that_does_not_run_is_forgotten
        }
        $crate::nodes_contract! { $fresh: takeovers
            what_a_lost_node_ran_is_taken_over_and_its_owner_fenced
            what_a_forgotten_node_ran_is_taken_over
            a_message_for_an_agent_whose_home_is_lost_is_taken_over
            nothing_is_taken_over_of_a_node_that_lives_or_is_back
            one_of_two_takers_wins
            what_a_taker_leaves_behind_is_taken_over_too
            an_agent_of_another_home_cannot_be_claimed
        }
        $crate::nodes_contract! { $fresh: sharing
            a_node_starts_with_its_own_agents
            a_node_finds_what_others_ask_of_its_agents
            agents_with_a_turn_to_be_stopped_come_first
            the_purges_of_a_node_are_its_own
            standings_are_those_of_any_node
            a_node_reads_what_another_one_has_saved
            the_limits_of_a_read_hold_for_all_agents_together
            many_agents_read_the_same_before_and_after_compaction
            changes_of_another_node_are_found_from_a_mark
            changes_are_found_in_steps
            an_agent_that_is_followed_elsewhere_is_known
            what_a_lost_node_had_followed_is_taken_once
        }
        $crate::nodes_contract! { $fresh: letters
            a_letter_reaches_its_node_once
            the_first_reply_to_a_letter_counts
        }
        $crate::nodes_contract! { $fresh: leftovers
            what_is_to_be_purged_of_a_lost_node_is_everybodys
            the_home_of_a_purged_agent_learns_that_its_files_are_left
            a_node_that_was_forgotten_has_nothing_to_remove
            a_look_goes_on_where_the_one_before_has_ended
        }
        $crate::nodes_contract! { $fresh: launches
            a_launch_for_any_node_is_taken_by_one
            nodes_take_the_oldest_launches_that_they_can_run
            a_launch_that_is_only_to_be_ended_is_taken_by_any_node
            of_several_nodes_one_takes_each_launch
            what_a_lost_node_has_taken_is_taken_over
            a_launch_for_one_node_is_found_by_that_node
            the_agent_types_of_a_node_are_known
            the_launches_of_all_nodes_are_counted_together
            launches_that_wait_are_counted_whoever_has_saved_them
        }
        $crate::nodes_contract! { $fresh: homes
            an_agent_of_a_lost_node_goes_on_at_any_node
            a_turn_that_waits_at_a_lost_node_is_let_go_by_its_taker
            a_running_turn_keeps_its_owner
            a_node_lets_only_its_own_agents_go
            a_node_that_leaves_lets_its_agents_go
            an_agent_without_a_home_is_purged_by_any_node
            the_former_home_of_an_agent_learns_that_its_folder_is_left
        }
        $crate::nodes_contract! { $fresh: credentials
            a_credential_of_one_node_is_used_once_at_any_node
            one_of_two_nodes_redeems_a_credential
            a_credential_is_valid_for_its_kind_and_its_time
            a_credential_that_is_found_stays
            there_is_room_for_so_many_credentials_of_each_kind
            the_oldest_credential_makes_room
        }
    };
    ($fresh:path: $area:ident $($promise:ident)*) => {
        $(
            #[tokio::test]
            async fn $promise() {
                let (servers, _guard) = $fresh().await;
                $crate::testing::contract::$area::$promise(&servers).await;
            }
        )*
    };
}

pub(super) async fn node<S: SharedStore>(store: &S, id: NodeId) -> Node {
    let nodes = store.nodes().await.unwrap();
    nodes.into_iter().find(|node| node.id == id).unwrap()
}

/// Declares the node lost, as one does that has seen its latest beat.
pub(super) async fn lose<S: SharedStore>(store: &S, id: NodeId) {
    let seen = node(store, id).await.pulse;
    assert!(store.declare_lost(id, seen).await.unwrap());
}

fn is_fenced<T: std::fmt::Debug>(answer: &Result<T, StoreError>) {
    assert!(matches!(answer, Err(StoreError::Fenced)), "{answer:?}");
}

/// An agent that `store` has created, whose turn has ended.
pub(super) async fn ended<S: SharedStore>(store: &S, n: u8) -> AgentId {
    let (agent, mut scribe) = running(store, n).await;
    saved(store, scribe.end(TurnOutcome::Completed)).await;
    agent.id
}

pub async fn a_node_keeps_its_number<S: SharedStore>(servers: &Servers<S>) {
    let (one, other) = servers.two().await;
    assert_ne!(one, other);
    for incarnation in 2..4 {
        servers.one.beat().await.unwrap();
        assert_eq!(servers.one.join().await.unwrap(), one);
        let now = node(&servers.other, one).await;
        assert_eq!((now.state, now.pulse), (NodeState::Alive, Pulse { incarnation, beat: 0 }));
        assert!(!now.name.is_empty() && !now.version.is_empty(), "{now:?}");
    }
    let mut ids: Vec<_> = servers.one.nodes().await.unwrap().iter().map(|node| node.id).collect();
    assert!(ids.is_sorted(), "{ids:?}");
    ids.sort();
    let mut both = [one, other];
    both.sort();
    assert_eq!(ids, both);
    assert_eq!(node(&servers.one, other).await.pulse.incarnation, 1);
}

pub async fn a_join_fences_only_what_the_node_itself_has_sent<S: SharedStore>(servers: &Servers<S>) {
    servers.two().await;
    let (agent, mut former) = running(&servers.one, 1).await;
    let (_, mut others) = running(&servers.other, 2).await;
    saved(&servers.one, former.say(vec![notice("saved")])).await;
    servers.one.join().await.unwrap();
    is_fenced(&servers.one.append(former.rehearse(vec![notice("late")])).await);
    is_fenced(&servers.other.append(former.rehearse(vec![notice("late")])).await);
    saved(&servers.other, others.say(vec![notice("goes on")])).await;
    let epoch = servers.one.claim(agent.id).await.unwrap().unwrap();
    assert!(Epoch::FIRST < epoch);
    saved(&servers.one, former.at_epoch(epoch).end(TurnOutcome::Completed)).await;
}

pub async fn a_server_that_joins_as_the_same_node_fences_the_older_one<S: SharedStore>(servers: &Servers<S>) {
    let (one, _) = servers.two().await;
    let (agent, former) = running(&servers.one, 1).await;
    assert_eq!(servers.twin.join().await.unwrap(), one);
    is_fenced(&servers.one.beat().await);
    is_fenced(&servers.one.leave().await);
    let (new, turn) = launch(2);
    is_fenced(&servers.one.create(new.clone(), turn.clone().into(), None).await);
    assert_eq!(servers.twin.get(new.id).await.unwrap(), None);
    servers.twin.create(new, turn.into(), None).await.unwrap();
    is_fenced(&servers.one.append(former.rehearse(vec![notice("late")])).await);
    assert_eq!(servers.one.claim(agent.id).await.unwrap(), None, "the newer one has it");
    assert!(servers.twin.claim(agent.id).await.unwrap().is_some());
    servers.twin.beat().await.unwrap();
    assert_eq!(node(&servers.other, one).await.pulse, Pulse { incarnation: 2, beat: 1 });
    assert_eq!(servers.one.join().await.unwrap(), one);
    is_fenced(&servers.twin.beat().await);
}

pub async fn a_beat_counts_and_shows_all_nodes<S: SharedStore>(servers: &Servers<S>) {
    let (one, other) = servers.two().await;
    for beat in 1..4 {
        let nodes = servers.one.beat().await.unwrap();
        assert_eq!(nodes, servers.other.nodes().await.unwrap());
        let pulses: Vec<_> = [one, other]
            .map(|id| nodes.iter().find(|node| node.id == id).unwrap().pulse.beat)
            .into_iter()
            .collect();
        assert_eq!(pulses, [beat, 0], "it counts its own");
    }
    assert_eq!(servers.other.beat().await.unwrap().len(), 2);
    assert_eq!(node(&servers.one, other).await.pulse, Pulse { incarnation: 1, beat: 1 });
}

pub async fn all_nodes_have_the_same_time<S: SharedStore>(servers: &Servers<S>) {
    servers.two().await;
    let mut before = None;
    for server in [&servers.one, &servers.other, &servers.one] {
        let now = server.shared_time().await.unwrap();
        assert!(before <= now && now.is_some(), "{now:?} is after {before:?}");
        before = now;
    }
}

pub async fn a_node_that_was_lost_or_has_left_does_not_beat_until_it_joins<S: SharedStore>(
    servers: &Servers<S>,
) {
    let (one, other) = servers.two().await;
    servers.one.leave().await.unwrap();
    assert_eq!(node(&servers.other, one).await.state, NodeState::Away);
    is_fenced(&servers.one.beat().await);
    servers.other.beat().await.unwrap();
    servers.one.join().await.unwrap();
    assert_eq!(servers.one.beat().await.unwrap().len(), 2);
    lose(&servers.other, one).await;
    assert_eq!(node(&servers.other, one).await.state, NodeState::Lost);
    is_fenced(&servers.one.beat().await);
    is_fenced(&servers.one.leave().await);
    servers.one.join().await.unwrap();
    servers.one.beat().await.unwrap();
    assert_eq!(node(&servers.one, other).await.state, NodeState::Alive);
}

pub async fn a_node_is_lost_only_with_the_pulse_that_was_seen<S: SharedStore>(servers: &Servers<S>) {
    let (one, _) = servers.two().await;
    let seen = node(&servers.other, one).await.pulse;
    servers.one.beat().await.unwrap();
    assert!(!servers.other.declare_lost(one, seen).await.unwrap(), "it has beaten since then");
    let seen = node(&servers.other, one).await.pulse;
    servers.one.join().await.unwrap();
    servers.one.beat().await.unwrap();
    assert!(!servers.other.declare_lost(one, seen).await.unwrap(), "it is back, and has beaten as often");
    assert_eq!(node(&servers.other, one).await.state, NodeState::Alive);
    let seen = node(&servers.other, one).await.pulse;
    assert!(servers.other.declare_lost(one, seen).await.unwrap());
    assert!(!servers.other.declare_lost(one, seen).await.unwrap(), "once");
    assert!(!servers.other.declare_lost(NodeId(99), seen).await.unwrap(), "there is no such node");
    assert_eq!(node(&servers.other, one).await.pulse, seen);
}

pub async fn a_node_that_is_away_can_be_lost<S: SharedStore>(servers: &Servers<S>) {
    let (one, _) = servers.two().await;
    servers.one.leave().await.unwrap();
    lose(&servers.other, one).await;
    assert_eq!(node(&servers.other, one).await.state, NodeState::Lost);
}

pub async fn only_a_node_that_does_not_run_is_forgotten<S: SharedStore>(servers: &Servers<S>) {
    let (one, _) = servers.two().await;
    assert!(!servers.other.forget(one).await.unwrap(), "it is alive");
    assert!(!servers.other.forget(NodeId(99)).await.unwrap(), "there is no such node");
    servers.one.leave().await.unwrap();
    assert!(servers.other.forget(one).await.unwrap());
    assert_eq!(node(&servers.other, one).await.state, NodeState::Gone);
    assert!(!servers.other.forget(one).await.unwrap(), "once");
    let seen = node(&servers.other, one).await.pulse;
    assert!(!servers.other.declare_lost(one, seen).await.unwrap(), "it is gone already");
    is_fenced(&servers.one.beat().await);
    assert_eq!(servers.one.join().await.unwrap(), one);
    servers.one.beat().await.unwrap();
    lose(&servers.other, one).await;
    assert!(servers.other.forget(one).await.unwrap());
    launched(&servers.other, 1).await;
}
