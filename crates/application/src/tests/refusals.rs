use tokenrail_domain::{AgentId, Sequence, Timestamp};
use tokenrail_ports::Deletion;
use tokenrail_ports::testing::{ScriptedRunner, Step};

use super::harness::{hanging, harness, words};
use crate::{AfterLastTurn, AgentFilter, CommandKey, Launch, Refusal};

fn ask(change: impl FnOnce(&mut Launch)) -> Launch {
    let mut launch = Launch { prompt: "hi".into(), ..Launch::default() };
    change(&mut launch);
    launch
}

fn key(body: &str) -> CommandKey {
    CommandKey { key: "k".into(), body: body.into() }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_launched_leaves_no_agent() {
    let h = harness(ScriptedRunner::new([]));
    let unknown = h.service.launch(ask(|launch| launch.kind = Some("nope".into()))).await;
    let said = unknown.unwrap_err().to_string();
    assert_eq!(said, "unknown agent type \"nope\"; configured types: scripted");
    let outside = h.service.launch(ask(|launch| launch.cwd = Some("/etc".into()))).await;
    assert!(matches!(outside, Err(Refusal::CwdNotAllowed(_))));
    let all = AgentFilter { limit: 10, ..AgentFilter::default() };
    assert_eq!(h.service.list(all).await.unwrap().items, []);
}

#[tokio::test(start_paused = true)]
async fn a_type_with_a_former_name_works_and_is_not_listed() {
    let h = harness(ScriptedRunner::new([vec![Step::line("close x")]]));
    let launched = h.service.launch(ask(|launch| launch.kind = Some("scripted-before".into()))).await;
    let id = launched.unwrap().agent.id;
    assert_eq!(words(&h.watch(id).await), ["user hi", "result completed -"]);
    let types = h.service.types().await;
    assert_eq!(types.iter().map(|info| &*info.name).collect::<Vec<_>>(), ["scripted"]);
}

#[tokio::test(start_paused = true)]
async fn more_agents_than_places_wait_and_more_than_may_wait_are_refused() {
    let h = harness(ScriptedRunner::new([vec![Step::Hang], vec![Step::Hang], vec![Step::line("close x")]]));
    let first = h.launch("1").await;
    let second = h.launch("2").await;
    for id in [first, second] {
        h.wait_for(id, |_| true).await;
    }
    let third = h.launch("3").await;
    assert!(matches!(h.service.launch(ask(|_| ())).await, Err(Refusal::TooManyQueuedLaunches)));
    h.service.cancel(first).await.unwrap();
    assert_eq!(words(&h.watch(third).await), ["user 3", "result completed -"]);
}

/// All launches arrive before any of them has a slot.
#[tokio::test(start_paused = true)]
async fn of_many_launches_at_once_as_many_are_taken_as_may_run_and_wait() {
    let h = harness(ScriptedRunner::new((0..3).map(|_| vec![Step::Hang])));
    let told = futures_util::future::join_all((0..20).map(|_| h.service.launch(ask(|_| ())))).await;
    let taken: Vec<_> = told.iter().filter_map(|told| told.as_ref().ok()).collect();
    assert_eq!(taken.len(), 3, "two run, and one waits");
    assert!(told.iter().all(|told| matches!(told, Ok(_) | Err(Refusal::TooManyQueuedLaunches))));
    for launched in taken {
        h.service.cancel(launched.agent.id).await.unwrap();
        h.watch(launched.agent.id).await;
    }
    h.service.launch(ask(|_| ())).await.expect("there is room again");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_waits_for_its_place_can_be_cancelled() {
    let h = harness(ScriptedRunner::new([vec![Step::Hang], vec![Step::Hang]]));
    for prompt in ["1", "2"] {
        let id = h.launch(prompt).await;
        h.wait_for(id, |_| true).await;
    }
    let waiting = h.launch("3").await;
    h.service.cancel(waiting).await.unwrap();
    assert_eq!(words(&h.watch(waiting).await), ["user 3", "result cancelled -"]);
    assert_eq!(h.service.get(waiting).await.unwrap().status.as_str(), "cancelled");
}

#[tokio::test(start_paused = true)]
async fn a_key_launches_once() {
    let h = harness(ScriptedRunner::new([vec![Step::Hang], vec![Step::Hang]]));
    let first = h.service.launch(ask(|launch| launch.idempotency = Some(key("a")))).await.unwrap();
    let again = h.service.launch(ask(|launch| launch.idempotency = Some(key("a")))).await.unwrap();
    assert_eq!((again.again, again.agent.id), (true, first.agent.id));
    let other = h.service.launch(ask(|launch| launch.idempotency = Some(key("b")))).await;
    assert!(matches!(other, Err(Refusal::KeyReused)));

    let id = first.agent.id;
    h.wait_for(id, |_| true).await;
    let sent = h.service.send(id, "m".into(), Some(key("m"))).await.unwrap();
    assert_eq!(h.service.send(id, "m".into(), Some(key("m"))).await.unwrap(), sent);
    assert!(matches!(h.service.send(id, "n".into(), Some(key("n"))).await, Err(Refusal::KeyReused)));
    assert_eq!(h.service.get(id).await.unwrap().queued, 1);
}

#[tokio::test(start_paused = true)]
async fn a_cursor_ahead_of_the_journal_is_refused_everywhere() {
    let h = harness(ScriptedRunner::new([vec![Step::line("close x")]]));
    let id = h.launch("hi").await;
    h.watch(id).await;
    let (ahead, head) = (Sequence(3), Sequence(2));
    let told = |refusal| matches!(refusal, Refusal::CursorAhead { head: told } if told == head);
    assert!(told(h.service.messages(id, ahead, None).await.unwrap_err()));
    assert!(told(h.service.events(id, ahead, None).await.unwrap_err()));
    assert!(told(h.service.follow(id, Some(ahead), AfterLastTurn::End).await.err().unwrap()));
    assert_eq!(h.service.messages(id, head, None).await.unwrap().events, []);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_agent_is_not_found_everywhere() {
    let h = harness(ScriptedRunner::new([]));
    let id = AgentId::new(Timestamp(5), [9; 10]);
    let told = |refusal: Refusal| matches!(refusal, Refusal::NotFound(told) if told == id);
    assert!(told(h.service.get(id).await.unwrap_err()));
    assert!(told(h.service.cancel(id).await.unwrap_err()));
    assert!(told(h.service.delete(id, Deletion::KeepHistory).await.unwrap_err()));
    assert!(told(h.service.send(id, "x".into(), None).await.unwrap_err()));
    assert!(told(h.service.messages(id, Sequence::START, None).await.unwrap_err()));
    assert!(told(h.service.follow(id, None, AfterLastTurn::End).await.err().unwrap()));
}

#[tokio::test(start_paused = true)]
async fn a_deleted_agent_can_be_read_and_not_written() {
    let (h, id) = hanging("hi").await;
    h.service.delete(id, Deletion::KeepHistory).await.unwrap();
    assert!(h.service.get(id).await.unwrap().deleted_at.is_some());
    assert!(matches!(h.service.send(id, "x".into(), None).await, Err(Refusal::Deleted)));
    let page = h.service.messages(id, Sequence::START, None).await.unwrap();
    assert_eq!(page.events.len(), 2, "{:?}", words(&page.events));
}

#[tokio::test(start_paused = true)]
async fn a_message_after_a_cancel_is_not_cancelled_with_it_and_waits_as_one() {
    let h = harness(ScriptedRunner::new([vec![Step::Hang], vec![Step::Hang], vec![Step::line("close x")]]));
    let mut running = Vec::new();
    for prompt in ["1", "2"] {
        let id = h.launch(prompt).await;
        h.wait_for(id, |_| true).await;
        running.push(id);
    }
    let waiting = h.launch("3").await;
    h.service.cancel(waiting).await.unwrap();
    h.watch(waiting).await;
    h.service.send(waiting, "again".into(), None).await.unwrap();
    let now = h.service.get(waiting).await.unwrap();
    assert_eq!((now.status.as_str(), now.ended_at, now.queued), ("initializing", None, 1));
    h.service.cancel(running[0]).await.unwrap();
    let events = words(&h.watch(waiting).await);
    assert_eq!(events, ["user 3", "result cancelled -", "user again", "result completed -"]);
}

#[tokio::test(start_paused = true)]
async fn a_command_that_comes_again_is_answered_whatever_has_become_of_the_server_and_the_agent() {
    let h = harness(ScriptedRunner::new([vec![Step::Hang], vec![Step::Hang]]));
    let keyed = || ask(|launch| launch.idempotency = Some(key("a")));
    let first = h.service.launch(keyed()).await.unwrap().agent.id;
    let second = h.launch("2").await;
    for id in [first, second] {
        h.wait_for(id, |_| true).await;
    }
    let third = h.launch("3").await;
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    assert!(matches!(h.service.launch(ask(|_| ())).await, Err(Refusal::TooManyQueuedLaunches)));
    let again = h.service.launch(keyed()).await.unwrap();
    assert_eq!((again.agent.id, again.again), (first, true));
    assert_eq!(h.workspace.own_folders(), [first, second, third], "no folder was made for it");

    let sent = h.service.send(first, "m".into(), Some(key("m"))).await.unwrap();
    h.service.delete(first, Deletion::KeepHistory).await.unwrap();
    assert_eq!(h.service.send(first, "m".into(), Some(key("m"))).await.unwrap(), sent);
    assert!(matches!(h.service.send(first, "m".into(), None).await, Err(Refusal::Deleted)));
    assert!(matches!(h.service.send(first, "n".into(), Some(key("n"))).await, Err(Refusal::KeyReused)));
}
