//! Each command at a node that does not have the agent, while another one takes over what the lost home ran.

use super::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Command {
    Message,
    Cancel,
    Answer,
    Delete,
    Purge,
}

impl Command {
    const ALL: [Self; 5] = [Self::Message, Self::Cancel, Self::Answer, Self::Delete, Self::Purge];

    async fn send(self, service: &AgentService, id: AgentId) -> Result<(), Refusal> {
        match self {
            Self::Message => service.send(id, "go on".into(), None).await.map(drop),
            Self::Cancel => service.cancel(id).await.map(drop),
            Self::Answer => service.answer(id, answer("yes")).await.map(drop),
            Self::Delete => service.delete(id, Deletion::KeepHistory).await,
            Self::Purge => service.delete(id, Deletion::Purge).await,
        }
    }
}

/// The home is killed, and `command` is sent to a third node `after` that. Then the home comes back.
async fn story(command: Command, after: Duration) {
    let what = format!("{command:?} after {after:?}");
    let two = pair([vec![Step::line("ask 1-1 yes no"), Step::UntilAnswered, Step::Hang]]).await;
    let third_bus = Arc::new(two.home_bus.another());
    let third = node(two.home.store.as_node(NodeId(3)), &third_bus, Vec::new()).await;
    let id = two.home.launch("hi").await;
    third.wait_for(id, |event| matches!(event.body, EventBody::Notice(_))).await;
    two.home.service.send(id, "wait".into(), None).await.unwrap();
    two.kill_home().await;
    sleep(after).await;

    let told = command.send(&third.service, id).await;
    match &told {
        Ok(()) => {}
        Err(Refusal::NodeUnavailable { .. }) => {
            assert!(matches!(command, Command::Message | Command::Answer), "{what}: {told:?}");
        }
        // The takeover has settled it.
        Err(Refusal::RequestSettled(_) | Refusal::RequestUnknown(_)) if command == Command::Answer => {}
        Err(error) => panic!("{what}: {error:?}"),
    }
    let is_open = |agent: tokenrail_domain::Agent| agent.status.is_active() || 0 < agent.queued;
    while third.store.saved_agent(id).is_some_and(is_open) {
        sleep(Duration::from_millis(10)).await;
    }
    let home = two.restart_home().await;
    sleep(Duration::from_secs(40)).await;

    assert_eq!(home.runner.orders().len(), 1, "{what}: no prompt runs that was not running");
    let kept = home.runner.swept().pop().unwrap();
    assert!(kept.iter().all(|(agent, _)| *agent != id), "{what}: nothing of it runs on");
    if command == Command::Purge {
        assert_eq!(third.store.saved_agent(id), None, "{what}");
        assert_eq!(home.workspace.own_folders(), [], "{what}: nothing is left at the home");
        return;
    }
    let turns = 2 + usize::from(command == Command::Message && told.is_ok());
    let agent = third.store.saved_agent(id).unwrap();
    assert_eq!((agent.turn.0 as usize, agent.queued), (turns, 0), "{what}");
    assert_eq!(agent.deleted_at.is_some(), command == Command::Delete, "{what}");
    let events = third.store.saved(id);
    assert_dense(&events);
    let results = events.iter().filter(|event| matches!(event.body, EventBody::TurnResult(_)));
    let results: Vec<u32> = results.map(|event| event.turn.0).collect();
    assert_eq!(results, (1..=turns as u32).collect::<Vec<_>>(), "{what}: each turn ends once");
}

#[tokio::test(start_paused = true)]
async fn each_command_during_a_takeover_does_what_it_says() {
    for command in Command::ALL {
        // A home is lost after 30 seconds.
        for after in [0, 15_000, 45_000].into_iter().chain((28_000..37_000).step_by(900)) {
            story(command, Duration::from_millis(after)).await;
        }
    }
}
