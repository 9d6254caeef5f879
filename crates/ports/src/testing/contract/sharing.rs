//! What nodes see of each other's agents, and what they leave for each other.

use std::collections::BTreeSet;

use tokenrail_domain::{
    AgentEdit, AgentId, Copied, Event, Sequence, StopReason, Timestamp, TurnNumber, TurnOutcome,
};

use super::nodes::{Servers, SharedStore, ended, lose};
use super::{everything, launched, running, saved};
use crate::testing::samples::{Scribe, WHOLE, launch, notice, page_of, queued_turn, text_delta};
use crate::{Deletion, OpenErrand, PageLimit, Standing, TouchMark};

async fn tell<S: SharedStore>(store: &S, agent: AgentId) {
    store.enqueue(queued_turn(agent, TurnNumber(0), "go on").into(), 9, None).await.unwrap();
}

async fn open_at<S: SharedStore>(store: &S) -> Vec<AgentId> {
    let open = store.with_open_turns(usize::MAX).await.unwrap();
    open.iter().map(|listed| listed.agent.id).collect()
}

pub async fn a_node_starts_with_its_own_agents<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, .. } = servers;
    let (lost, _) = servers.two().await;
    let (first, _) = running(one, 1).await;
    let (second, ..) = launched(one, 2).await;
    let idle = ended(one, 3).await;
    let (theirs, _) = running(other, 4).await;
    assert_eq!((open_at(one).await, open_at(other).await), (vec![first.id, second.id], vec![theirs.id]));
    tell(other, idle).await;
    assert_eq!(open_at(one).await, [first.id, second.id, idle]);
    lose(other, lost).await;
    other.take_over(first.id).await.unwrap().unwrap();
    one.join().await.unwrap();
    assert_eq!(
        (open_at(one).await, open_at(other).await),
        (vec![second.id, idle], vec![first.id, theirs.id])
    );
}

async fn errands<S: SharedStore>(store: &S) -> Vec<(AgentId, bool, bool)> {
    let found = store.errands(9).await.unwrap().turns;
    found.iter().map(|&OpenErrand { agent, stop, stop_running }| (agent, stop, stop_running)).collect()
}

pub async fn a_node_finds_what_others_ask_of_its_agents<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, .. } = servers;
    servers.two().await;
    let (runs, mut scribe) = running(one, 1).await;
    let idle = ended(one, 2).await;
    let (theirs, _) = running(other, 3).await;
    assert_eq!(errands(one).await, [], "what runs needs nothing");
    tell(other, idle).await;
    tell(one, theirs.id).await;
    assert_eq!(errands(one).await, [(idle, false, false)]);
    assert_eq!(errands(other).await, [(theirs.id, false, false)]);
    tell(other, runs.id).await;
    other.stop_turn(runs.id.turn(TurnNumber(2)), StopReason::Cancelled).await.unwrap();
    assert_eq!(errands(one).await, [(runs.id, true, false), (idle, false, false)]);
    other.cancel(runs.id, Timestamp(10)).await.unwrap();
    other.cancel(idle, Timestamp(10)).await.unwrap();
    assert_eq!(errands(one).await, [(runs.id, true, true), (idle, true, false)]);
    assert_eq!(one.errands(1).await.unwrap().turns.len(), 1);
    saved(one, scribe.end(TurnOutcome::Cancelled)).await;
    assert_eq!(errands(one).await, [(runs.id, true, false), (idle, true, false)]);
    assert_eq!(errands(other).await, [(theirs.id, false, false)]);
}

pub async fn agents_with_a_turn_to_be_stopped_come_first<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, .. } = servers;
    servers.two().await;
    let (waits, stops) = (ended(one, 1).await, ended(one, 2).await);
    tell(other, waits).await;
    tell(other, stops).await;
    other.cancel(stops, Timestamp(10)).await.unwrap();
    assert_eq!(errands(one).await, [(stops, true, false), (waits, false, false)]);
    assert_eq!(one.errands(1).await.unwrap().turns[0].agent, stops);
}

pub async fn the_purges_of_a_node_are_its_own<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, .. } = servers;
    servers.two().await;
    let (mine, theirs) = (ended(one, 1).await, ended(other, 2).await);
    let import = tokenrail_domain::Agent { copy: Some(Copied::File), ..launch(3).0 };
    one.begin_import(import.clone()).await.unwrap();
    other.delete(mine, Timestamp(10), Deletion::Purge).await.unwrap();
    one.delete(theirs, Timestamp(10), Deletion::Purge).await.unwrap();
    assert_eq!(one.to_purge().await.unwrap(), [mine, import.id]);
    assert_eq!(one.errands(9).await.unwrap().to_purge, [mine], "what is being imported stays");
    assert_eq!(one.errands(0).await.unwrap().to_purge, []);
    assert_eq!(other.to_purge().await.unwrap(), [theirs]);
    assert_eq!(other.errands(9).await.unwrap().to_purge, [theirs]);
    one.purge(mine, Timestamp(11)).await.unwrap();
    assert_eq!(one.errands(9).await.unwrap().to_purge, []);
}

pub async fn standings_are_those_of_any_node<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, .. } = servers;
    servers.two().await;
    let (runs, mut scribe) = running(one, 1).await;
    saved(one, scribe.say(vec![notice("a"), notice("b")])).await;
    let idle = ended(one, 2).await;
    let (deleted, _) = running(other, 3).await;
    other.delete(deleted.id, Timestamp(10), Deletion::KeepHistory).await.unwrap();
    let purged = ended(one, 4).await;
    one.purge(purged, Timestamp(10)).await.unwrap();
    let wanted = vec![deleted.id, launch(9).0.id, runs.id, purged, idle];
    let standing = |agent, head, open, deleted| Standing { agent, head: Sequence(head), open, deleted };
    let expected = [
        standing(deleted.id, 1, true, true),
        standing(runs.id, 3, true, false),
        standing(idle, 2, false, false),
    ];
    assert_eq!(other.standings(wanted.clone()).await.unwrap(), expected);
    assert_eq!(one.standings(wanted).await.unwrap(), expected);
    assert_eq!(one.standings(Vec::new()).await.unwrap(), []);
}

/// Some agents of `one` that have said something in several batches.
async fn talkers<S: SharedStore>(one: &S) -> Vec<(AgentId, Scribe)> {
    let mut talkers = Vec::new();
    for n in 1..4 {
        let (agent, mut scribe) = running(one, n).await;
        for text in 0..3 + n {
            let text = format!("{text} ").repeat(40);
            saved(one, scribe.say(vec![text_delta(0, &text), notice("n")])).await;
        }
        talkers.push((agent.id, scribe));
    }
    talkers
}

pub async fn a_node_reads_what_another_one_has_saved<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, .. } = servers;
    servers.two().await;
    let agents: Vec<AgentId> = talkers(one).await.into_iter().map(|(agent, _)| agent).collect();
    let head = everything(other, agents[1]).await.len() as u64;
    let all = other
        .read_many(
            vec![
                (agents[2], Sequence(4)),
                (launch(9).0.id, Sequence::START),
                (agents[1], Sequence(head)),
                (agents[0], Sequence::START),
                (agents[1], Sequence(u64::MAX)),
            ],
            WHOLE,
        )
        .await
        .unwrap();
    let rest = other.read(agents[2], Sequence(4), WHOLE).await.unwrap();
    assert_eq!(all, [(agents[2], rest), (agents[0], everything(one, agents[0]).await)]);
    assert_eq!(other.read_many(Vec::new(), WHOLE).await.unwrap(), []);
    let nothing = vec![(agents[1], Sequence(head)), (launch(9).0.id, Sequence::START)];
    assert_eq!(other.read_many(nothing, WHOLE).await.unwrap(), []);
}

fn weight(event: &Event) -> usize {
    event.body.text_bytes() + event.raw.as_ref().map_or(0, bytes::Bytes::len)
}

pub async fn the_limits_of_a_read_hold_for_all_agents_together<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, .. } = servers;
    servers.two().await;
    let agents: Vec<AgentId> = talkers(one).await.into_iter().map(|(agent, _)| agent).collect();
    for limit in [
        page_of(0),
        page_of(1),
        page_of(7),
        page_of(11),
        PageLimit { bytes: 1, ..WHOLE },
        PageLimit { bytes: 500, ..WHOLE },
    ] {
        let mut wanted: Vec<(AgentId, Sequence)> =
            agents.iter().map(|agent| (*agent, Sequence::START)).collect();
        let mut read: Vec<Vec<_>> = vec![Vec::new(); agents.len()];
        loop {
            let pages = other.read_many(wanted.clone(), limit).await.unwrap();
            if pages.is_empty() {
                break;
            }
            let events: Vec<usize> = pages.iter().flat_map(|(_, events)| events.iter().map(weight)).collect();
            assert!(events.len() <= limit.events.max(1), "{limit:?}: {events:?}");
            // The last one may exceed it, because each page has one.
            let but_the_last: usize = events.iter().rev().skip(1).sum();
            assert!(but_the_last <= limit.bytes, "{limit:?}: {events:?}");
            for (agent, events) in pages {
                let at = agents.iter().position(|it| *it == agent).unwrap();
                wanted[at].1 = events.last().unwrap().sequence;
                read[at].extend(events);
            }
        }
        for (agent, read) in agents.iter().zip(&read) {
            assert_eq!(read, &everything(one, *agent).await, "{limit:?}");
        }
    }
}

pub async fn many_agents_read_the_same_before_and_after_compaction<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, .. } = servers;
    servers.two().await;
    let mut expected = Vec::new();
    for (agent, mut scribe) in talkers(one).await {
        saved(one, scribe.end(TurnOutcome::Completed)).await;
        expected.push((agent, everything(one, agent).await));
    }
    for compacted in [false, true] {
        while compacted && one.compact_next().await.unwrap() {}
        for cursor in 0..12 {
            let wanted = expected.iter().map(|(agent, _)| (*agent, Sequence(cursor))).collect();
            let read = other.read_many(wanted, WHOLE).await.unwrap();
            let rest =
                expected.iter().map(|(agent, all)| (*agent, all[all.len().min(cursor as usize)..].to_vec()));
            let rest: Vec<_> = rest.filter(|(_, events)| !events.is_empty()).collect();
            assert_eq!(read, rest, "after {cursor}, compacted: {compacted}");
        }
    }
}

async fn now<S: SharedStore>(store: &S) -> TouchMark {
    let touched = store.touched(None, 9).await.unwrap();
    assert_eq!(touched.agents, []);
    touched.mark
}

/// What `other` finds after the mark.
async fn found<S: SharedStore>(store: &S, mark: TouchMark) -> BTreeSet<AgentId> {
    let touched = store.touched(Some(mark), 99).await.unwrap();
    touched.agents.into_iter().map(|(agent, _)| agent).collect()
}

pub async fn changes_of_another_node_are_found_from_a_mark<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, .. } = servers;
    servers.two().await;
    let mark = now(other).await;
    let (agent, turn, mut scribe) = launched(one, 1).await;
    let id = agent.id;
    assert!(found(other, mark).await.contains(&id), "created");
    let mark = now(other).await;
    saved(one, scribe.start(&turn)).await;
    assert!(found(other, mark).await.contains(&id), "begun");
    let mark = now(other).await;
    tell(one, id).await;
    assert!(found(other, mark).await.contains(&id), "told");
    let mark = now(other).await;
    one.stop_turn(id.turn(TurnNumber(2)), StopReason::Cancelled).await.unwrap();
    assert!(found(other, mark).await.contains(&id), "a turn is stopped");
    let mark = now(other).await;
    one.cancel(id, Timestamp(10)).await.unwrap();
    assert!(found(other, mark).await.contains(&id), "cancelled");
    let mark = now(other).await;
    saved(one, scribe.end(TurnOutcome::Cancelled)).await;
    assert!(found(other, mark).await.contains(&id), "ended");
    let mark = now(other).await;
    one.edit(id, AgentEdit { pinned: Some(true), ..AgentEdit::default() }).await.unwrap();
    assert!(found(other, mark).await.contains(&id), "edited");
    let mark = now(other).await;
    one.delete(id, Timestamp(11), Deletion::Purge).await.unwrap();
    assert!(found(other, mark).await.contains(&id), "deleted");
    let mark = now(other).await;
    one.purge(id, Timestamp(12)).await.unwrap();
    assert!(found(other, mark).await.contains(&id), "purged");
}

pub async fn changes_are_found_in_steps<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, .. } = servers;
    servers.two().await;
    let mut mark = now(other).await;
    let mut created = Vec::new();
    for n in 0..7 {
        created.push(launched(one, n).await.0.id);
    }
    let mut found: Vec<AgentId> = Vec::new();
    while found.len() < created.len() {
        let touched = other.touched(Some(mark), 2).await.unwrap();
        assert!(touched.agents.len() <= 2 && touched.agents.is_sorted_by_key(|(_, touch)| *touch));
        assert!(mark <= touched.mark);
        mark = touched.mark;
        for (agent, _) in touched.agents {
            if !found.contains(&agent) {
                found.push(agent);
            }
        }
    }
    assert_eq!(found, created, "those first that changed first");
}

pub async fn an_agent_that_is_followed_elsewhere_is_known<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, .. } = servers;
    let (_, second) = servers.two().await;
    let (agent, _) = running(one, 1).await;
    let (another, _) = running(one, 2).await;
    let is_watched = async |store: &S, agent| store.is_watched_elsewhere(agent).await.unwrap();
    assert!(!is_watched(one, agent.id).await);
    for _ in 0..2 {
        other.set_watched(agent.id, true).await.unwrap();
    }
    assert!(is_watched(one, agent.id).await);
    assert!(!is_watched(one, another.id).await);
    assert!(!is_watched(other, agent.id).await, "only here");
    other.set_watched(agent.id, false).await.unwrap();
    assert!(!is_watched(one, agent.id).await);
    other.set_watched(agent.id, true).await.unwrap();
    lose(one, second).await;
    assert!(!is_watched(one, agent.id).await, "the node is lost");
    one.set_watched(launch(9).0.id, true).await.unwrap();
}

pub async fn what_a_lost_node_had_followed_is_taken_once<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, third, .. } = servers;
    let (_, second) = servers.two().await;
    third.join().await.unwrap();
    let ((agent, _), (another, _)) = (running(one, 1).await, running(one, 2).await);
    one.set_watched(another.id, true).await.unwrap();
    other.set_watched(agent.id, true).await.unwrap();
    other.set_watched(another.id, true).await.unwrap();
    assert_eq!(one.take_watched().await.unwrap(), [another.id], "the other one is alive");
    other.join().await.unwrap();
    let mut both = [agent.id, another.id];
    both.sort();
    assert_eq!(other.take_watched().await.unwrap(), both, "its previous process has saved them");
    lose(one, second).await;
    assert_eq!(one.take_watched().await.unwrap(), both);
    assert_eq!(third.take_watched().await.unwrap(), []);
    assert!(third.is_watched_elsewhere(agent.id).await.unwrap());
    other.join().await.unwrap();
    assert_eq!(other.take_watched().await.unwrap(), []);
}
