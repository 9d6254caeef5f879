//! Several nodes on one store: a client may ask any of them.

mod commands;
mod fences;
mod homes;
mod keys;
mod launches;
mod leftovers;
mod lifecycle_elsewhere;
mod takeovers;

use std::sync::Arc;
use std::time::Duration;

use tokenrail_domain::{AgentId, AgentStatus, Event, EventBody, NodeId, Notice, PermissionReply, Sequence};
use tokenrail_ports::testing::{MemoryBus, MemoryStore, NotedWorkspace, ScriptedRunner, Step};
use tokenrail_ports::{Deletion, INodes, NodeState, PermissionAnswer};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use super::harness::{Harness, assert_dense, outside, tiny_limits, words};
use crate::{
    AfterLastTurn, AgentService, AnswerOutcome, Fence, Launch, LifecycleEvent, LifecycleReader, Next,
    Outside, Refusal,
};

mod watching;

/// Two nodes, and the buses between them.
struct Pair {
    home: Harness,
    other: Harness,
    home_bus: Arc<MemoryBus>,
    other_bus: Arc<MemoryBus>,
}

/// A node of the store, started.
async fn node(store: MemoryStore, bus: &Arc<MemoryBus>, scripts: Vec<Vec<Step>>) -> Harness {
    let (store, runner) = (Arc::new(store), Arc::new(ScriptedRunner::new(scripts)));
    start(store, bus, runner).await
}

async fn start(store: Arc<MemoryStore>, bus: &Arc<MemoryBus>, runner: Arc<ScriptedRunner>) -> Harness {
    start_in(Arc::default(), store, bus, runner).await
}

async fn start_in(
    workspace: Arc<NotedWorkspace>,
    store: Arc<MemoryStore>,
    bus: &Arc<MemoryBus>,
    runner: Arc<ScriptedRunner>,
) -> Harness {
    let outside = Outside { bus: bus.clone(), ..outside(&store, &runner, &workspace) };
    let service = AgentService::new(outside, tiny_limits(), Handle::current());
    service.recover().await.unwrap();
    Harness { service, store, runner, workspace }
}

async fn pair(scripts: impl IntoIterator<Item = Vec<Step>>) -> Pair {
    let home_bus = Arc::new(MemoryBus::new(3));
    let other_bus = Arc::new(home_bus.another());
    let home = node(MemoryStore::shared(7), &home_bus, scripts.into_iter().collect()).await;
    let other = node(home.store.as_node(NodeId(2)), &other_bus, Vec::new()).await;
    Pair { home, other, home_bus, other_bus }
}

impl Pair {
    /// Ends the home as kill -9 does: it says nothing, and its run is left.
    async fn kill_home(&self) {
        self.home.service.core.closing.cancel();
        self.home.service.core.tracker.close();
        self.home.service.core.tracker.wait().await;
    }

    async fn kill_other(&self) {
        self.other.service.core.closing.cancel();
        self.other.service.core.tracker.close();
        self.other.service.core.tracker.wait().await;
    }

    /// Starts the other node again.
    async fn restart_other(&self) -> Harness {
        let store = Arc::new(self.home.store.as_node(NodeId(2)));
        start(store, &self.other_bus, Arc::clone(&self.other.runner)).await
    }

    /// Starts the home again.
    async fn restart_home(&self) -> Harness {
        let store = Arc::new(self.home.store.as_node(NodeId::ONLY));
        let workspace = Arc::clone(&self.home.workspace);
        start_in(workspace, store, &self.home_bus, Arc::clone(&self.home.runner)).await
    }
}

fn said(text: &str) -> Vec<Step> {
    [&format!("say {text}"), "end", &format!("close {text}")].map(Step::line).to_vec()
}

/// Waits until an agent is what is asked for.
async fn until(h: &Harness, id: AgentId, is: impl Fn(&tokenrail_domain::Agent) -> bool) {
    while !h.store.saved_agent(id).is_some_and(|agent| is(&agent)) {
        sleep(Duration::from_millis(10)).await;
    }
}

fn errors(events: &[Event]) -> Vec<&str> {
    let code = |event: &Event| match &event.body {
        EventBody::TurnResult(result) => result.error.as_ref()?.code.clone(),
        _ => None,
    };
    let codes = events.iter().filter_map(code);
    codes.map(|code| if code == "node_lost" { "node_lost" } else { "another" }).collect()
}

#[tokio::test(start_paused = true)]
async fn a_reader_at_another_node_sees_the_same() {
    let two = pair([said("one")]).await;
    let id = two.home.launch("hi").await;
    let (there, here) = tokio::join!(two.other.watch(id), two.home.watch(id));
    assert_eq!(there, here);
    assert_eq!(words(&there).last().unwrap(), "result completed -");
    assert_eq!(two.other.watch(id).await, here, "and afterwards");
    let nodes = two.other.service.stats().nodes;
    assert_eq!((nodes.events_gathered, nodes.by_state), (there.len() as u64, [2, 0, 0, 0]));
    assert_eq!(two.home.service.stats().nodes.events_gathered, 0);
}

#[tokio::test(start_paused = true)]
async fn without_hints_a_reader_at_another_node_is_late_but_misses_nothing() {
    let gate = Arc::new(Notify::new());
    let script = vec![Step::line("say a"), Step::Gate(gate.clone()), Step::line("say b"), Step::Hang];
    let two = pair([script]).await;
    two.other_bus.break_off();
    let id = two.home.launch("hi").await;
    let (_, mut follower) =
        two.other.service.follow(id, Some(Sequence::START), AfterLastTurn::Wait).await.unwrap();
    let mut seen = Vec::new();
    let mut asked = None;
    while seen.len() < 3 {
        let Next::Page(page) = follower.next().await.unwrap() else { panic!("the stream ended") };
        seen.extend_from_slice(page.events());
        if seen.len() == 2 {
            asked.get_or_insert_with(Instant::now);
            gate.notify_one();
        }
    }
    assert_dense(&seen);
    assert!(0 < two.other.service.stats().nodes.poll_found);
    assert!(asked.unwrap().elapsed() < Duration::from_millis(1500));
}

#[tokio::test(start_paused = true)]
async fn a_message_to_another_node_runs_at_home_once() {
    let two = pair([said("one"), said("two")]).await;
    let id = two.home.launch("hi").await;
    two.home.watch(id).await;
    two.other.service.send(id, "go on".into(), None).await.unwrap();
    let seen = two.other.watch(id).await;
    assert_eq!(words(&seen).iter().filter(|word| word.starts_with("result")).count(), 2);
    assert_eq!((two.home.runner.orders().len(), two.other.runner.orders().len()), (2, 0));
    assert_eq!(two.home.service.stats().nodes.errands, 1);
}

#[tokio::test(start_paused = true)]
async fn a_message_to_another_node_runs_although_every_hint_is_lost() {
    let two = pair([said("one"), said("two")]).await;
    let id = two.home.launch("hi").await;
    two.home.watch(id).await;
    two.home_bus.break_off();
    two.other.service.send(id, "go on".into(), None).await.unwrap();
    until(&two.home, id, |agent| agent.turn.0 == 2 && agent.status == AgentStatus::Completed).await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_at_another_node_stops_the_running_turn_and_those_that_wait() {
    let two = pair([vec![Step::Hang]]).await;
    let id = two.home.launch("hi").await;
    two.other.wait_for(id, |_| true).await;
    two.other.service.send(id, "wait".into(), None).await.unwrap();
    two.other.service.cancel(id).await.unwrap();
    let seen = two.other.watch(id).await;
    let results: Vec<_> = words(&seen).into_iter().filter(|word| word.starts_with("result")).collect();
    assert_eq!(results, ["result cancelled -", "result cancelled -"]);
    assert_eq!((two.home.runner.cancels(), two.home.runner.orders().len()), (1, 1));
    while two.home.runner.dismissed().is_empty() {
        sleep(Duration::from_millis(10)).await;
    }
}

fn answer(option: &str) -> PermissionAnswer {
    let reply = PermissionReply::of(Some(option.to_owned()));
    PermissionAnswer { request_id: "1-1".to_owned(), reply }
}

#[tokio::test(start_paused = true)]
async fn a_permission_answer_at_another_node_reaches_the_agent() {
    let [ask, settle] = ["ask 1-1 yes no", "settle 1-1 yes"].map(Step::line);
    let two = pair([vec![ask, Step::UntilAnswered, settle, Step::Hang]]).await;
    let id = two.home.launch("go").await;
    let asks = |event: &Event| matches!(&event.body, EventBody::Notice(notice) if notice.subtype == Notice::PERMISSION_REQUEST);
    two.other.wait_for(id, asks).await;
    while two.other.service.needs(id).open_questions == 0 {
        sleep(Duration::from_millis(10)).await;
    }
    let refused = two.other.service.answer(id, answer("maybe")).await;
    assert!(matches!(&refused, Err(Refusal::OptionUnknown { known }) if known == "yes, no"), "{refused:?}");
    assert_eq!(two.other.service.answer(id, answer("yes")).await.unwrap(), AnswerOutcome::Settled);
    let late = two.other.service.answer(id, answer("yes")).await;
    assert!(matches!(late, Err(Refusal::RequestSettled(_))), "{late:?}");
    assert_eq!(two.home.service.stats().nodes.letters, 3);
    two.other.service.cancel(id).await.unwrap();
    two.other.watch(id).await;
    while two.other.service.needs(id).open_questions != 0 {
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(two.home.runner.answers().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_delete_at_another_node_stops_the_agent_and_removes_its_files() {
    let two = pair([vec![Step::Hang]]).await;
    let id = two.home.launch("hi").await;
    two.home.wait_for(id, |_| true).await;
    let mut news = two.home.service.lifecycle_events();
    two.other.service.delete(id, Deletion::Purge).await.unwrap();
    assert!(two.home.store.saved_agent(id).is_none());
    assert_eq!((two.home.runner.forgotten(), two.home.runner.cancels()), (vec![id], 1));
    assert!(two.other.runner.forgotten().is_empty());
    until_told(&mut news, "deleted").await;
    assert!(matches!(
        two.home.service.follow(id, None, AfterLastTurn::Wait).await,
        Err(Refusal::NotFound(_))
    ));
}

/// Waits for a lifecycle event with this name or status.
async fn until_told(news: &mut LifecycleReader, what: &str) {
    loop {
        let Ok(told) = news.next().await.expect("the service runs") else { continue };
        let word = match &told.event {
            LifecycleEvent::Created { .. } => "created",
            LifecycleEvent::Updated { status, .. } => status.as_str(),
            LifecycleEvent::Deleted { .. } => "deleted",
        };
        if word == what {
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn clients_of_another_node_hear_of_all_agents() {
    for is_broken in [false, true] {
        let two = pair([said("one")]).await;
        let mut news = two.other.service.lifecycle_events();
        // The first beat finds another node, and what was sent before the node listened is unknown: clients load the
        // list. If that came after the launch, they would not hear of it.
        sleep(Duration::from_secs(5)).await;
        while news.next().await.unwrap().is_ok() {}
        if is_broken {
            two.other_bus.break_off();
            sleep(Duration::from_secs(5)).await;
        }
        let id = two.home.launch("hi").await;
        for told in ["created", "completed"] {
            until_told(&mut news, told).await;
        }
        two.home.service.delete(id, Deletion::KeepHistory).await.unwrap();
        until_told(&mut news, "deleted").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_back_in_time_loses_nothing() {
    let two = pair([vec![Step::line("say half"), Step::Hang]]).await;
    let id = two.home.launch("hi").await;
    two.home.wait_for(id, |event| matches!(event.body, EventBody::TextDelta { .. })).await;
    two.kill_home().await;
    sleep(Duration::from_secs(20)).await;
    two.home.runner.adopt_next(Some(["say half", "say more", "end", "close done"].map(Step::line).to_vec()));
    let back = two.restart_home().await;
    let seen = two.other.watch(id).await;
    assert_eq!((errors(&seen), words(&seen).last().unwrap().as_str()), (vec![], "result completed -"));
    assert_eq!(back.watch(id).await, seen);
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_store_is_busy_when_it_starts_waits() {
    let two = pair([vec![Step::Hang]]).await;
    let id = two.home.launch("hi").await;
    two.home.wait_for(id, |_| true).await;
    two.kill_home().await;
    two.home.store.refuse_joins(3);
    let back = two.restart_home().await;
    assert_eq!(back.store.nodes().await.unwrap()[0].state, NodeState::Alive);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_stops_in_order_is_waited_for() {
    let two = pair([vec![Step::Hang]]).await;
    let id = two.home.launch("hi").await;
    two.home.wait_for(id, |_| true).await;
    assert!(two.home.service.shutdown(crate::AtStop::Keep, Duration::from_secs(5)).await);
    sleep(Duration::from_secs(200)).await;
    let nodes = two.other.service.nodes().await.unwrap();
    assert_eq!(
        nodes.iter().map(|view| view.node.state).collect::<Vec<_>>(),
        [NodeState::Away, NodeState::Alive]
    );
    two.other.service.send(id, "wait".into(), None).await.unwrap();
    assert_eq!(two.home.store.saved_agent(id).unwrap().status, AgentStatus::Running);
    sleep(Duration::from_secs(200)).await;
    assert_eq!(errors(&two.other.watch(id).await), ["node_lost", "node_lost"]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_takes_long_to_stop_is_alive_meanwhile() {
    let two = pair([vec![Step::Hang]]).await;
    let id = two.home.launch("hi").await;
    two.home.wait_for(id, |_| true).await;
    two.home.service.core.tracker.spawn(sleep(Duration::from_mins(2)));
    assert!(two.home.service.shutdown(crate::AtStop::Keep, Duration::from_mins(3)).await);
    let nodes = two.other.service.nodes().await.unwrap();
    assert_eq!(nodes[0].node.state, NodeState::Away);
    let home = two.restart_home().await;
    home.service.cancel(id).await.unwrap();
    assert_eq!(words(&home.watch(id).await).last().unwrap(), "result cancelled -");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_out_of_touch_with_the_store_begins_no_run() {
    let two = pair([said("one")]).await;
    two.home.store.refuse_beats(true);
    sleep(Duration::from_secs(26)).await;
    let id = two.home.launch("hi").await;
    sleep(Duration::from_secs(3)).await;
    assert!(two.home.runner.orders().is_empty());
    two.home.store.refuse_beats(false);
    two.home.watch(id).await;
    assert_eq!(two.home.runner.orders().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_out_of_touch_with_the_store_is_not_ready() {
    let two = pair([]).await;
    until_ready(&two.home).await;
    two.home.store.refuse_beats(true);
    sleep(Duration::from_secs(26)).await;
    assert!(matches!(two.home.service.check().await, Err(Refusal::OutOfTouch)));
    two.home.store.refuse_beats(false);
    until_ready(&two.home).await;
}

async fn until_ready(node: &Harness) {
    while node.service.check().await.is_err() {
        sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_waited_for_its_place_begins_only_in_touch_with_the_store() {
    let two = pair([vec![Step::Hang], vec![Step::Hang], said("three")]).await;
    let first = two.home.launch("one").await;
    two.home.wait_for(first, |_| true).await;
    let second = two.home.launch("two").await;
    two.home.wait_for(second, |_| true).await;
    let third = two.home.launch("three").await;
    two.home.store.refuse_beats(true);
    sleep(Duration::from_secs(25)).await;
    two.home.service.cancel(first).await.unwrap();
    sleep(Duration::from_secs(3)).await;
    assert_eq!(two.home.runner.orders().len(), 2, "it has a slot, and may have been declared lost");
    two.home.store.refuse_beats(false);
    two.home.watch(third).await;
    assert_eq!(two.home.runner.orders().len(), 3);
}
