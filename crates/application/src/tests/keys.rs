//! Keys are remembered for the promised time, whatever the clock says.

use std::sync::Arc;
use std::time::Duration;

use tokenrail_domain::{AgentId, Timestamp};
use tokenrail_ports::testing::{MemoryStore, NotedWorkspace, ScriptedRunner, Step, StoppedClock};
use tokenrail_ports::{AgentFilter, IAgentRepository as _, ListBounds};
use tokio::runtime::Handle;

use super::harness::{outside, tiny_limits};
use crate::{AgentService, CommandKey, Launch, Outside};

const BOUNDS: ListBounds = ListBounds { field_bytes: 100, bytes: 10_000 };
const DAY_MS: i64 = 24 * 3_600_000;
const DAY: Duration = Duration::from_hours(24);

/// A server on the store, with its own clock.
fn server(store: &Arc<MemoryStore>, now: i64) -> (AgentService, Arc<StoppedClock>) {
    let scripts = (0..9).map(|_| vec![Step::line("close done")]);
    let runner = Arc::new(ScriptedRunner::new(scripts));
    let clock = Arc::new(StoppedClock::at(Timestamp(1_700_000_000_000 + now)));
    let outside =
        Outside { clock: clock.clone(), ..outside(store, &runner, &Arc::new(NotedWorkspace::default())) };
    (AgentService::new(outside, tiny_limits(), Handle::current()), clock)
}

/// The agent that a launch with this key returns, and whether the launch was a repetition.
async fn launch(service: &AgentService, key: &str) -> (AgentId, bool) {
    let key = CommandKey { key: key.to_owned(), body: "p".to_owned() };
    let launch = Launch { prompt: "p".into(), idempotency: Some(key), ..Launch::default() };
    let outcome = service.launch(launch).await.unwrap();
    (outcome.agent.id, outcome.again)
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_and_comes_back_makes_no_key_old() {
    let (service, clock) = server(&Arc::new(MemoryStore::new(1)), 0);
    let first = launch(&service, "a").await.0;
    for jump in [DAY_MS * 25 / 24, 400 * DAY_MS, -400 * DAY_MS] {
        clock.advance_ms(jump);
        // Another command with a key meanwhile.
        launch(&service, &format!("other {jump}")).await;
        assert_eq!(launch(&service, "a").await, (first, true), "in the meantime");
        clock.advance_ms(-jump);
        assert_eq!(launch(&service, "a").await, (first, true), "and afterwards");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_starts_with_a_wrong_clock_forgets_no_key() {
    let store = Arc::new(MemoryStore::new(1));
    let (service, _) = server(&store, 0);
    let first = launch(&service, "a").await.0;
    service.shutdown(crate::AtStop::Cancel, DAY).await;
    for wrong in [25 * DAY_MS, -25 * DAY_MS, 1] {
        let (service, _) = server(&store, wrong);
        launch(&service, &format!("other {wrong}")).await;
        assert_eq!(launch(&service, "a").await, (first, true), "{wrong}");
        service.shutdown(crate::AtStop::Cancel, DAY).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_is_forgotten_when_the_server_has_lived_for_so_long() {
    let store = Arc::new(MemoryStore::new(1));
    let (service, _) = server(&store, 0);
    let first = launch(&service, "a").await.0;
    tokio::time::sleep(Duration::from_secs(24 * 3600 - 1)).await;
    assert_eq!(launch(&service, "a").await, (first, true));
    let second = launch(&service, "b").await.0;
    service.shutdown(crate::AtStop::Cancel, DAY).await;
    // After a restart, the time that the server ran until its newest key counts.
    let (service, _) = server(&store, 7);
    assert_eq!(launch(&service, "a").await, (first, true));
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(!launch(&service, "a").await.1, "the clock stands still, and the day is over");
    assert_eq!(launch(&service, "b").await, (second, true));
}

/// A store that repeats a launch whose outcome it did not learn finds the agent that it has saved itself.
#[tokio::test(start_paused = true)]
async fn a_launch_that_the_store_repeats_keeps_the_folder_of_its_agent() {
    for key in [Some("a"), None] {
        let (store, workspace) = (Arc::new(MemoryStore::new(1)), Arc::new(NotedWorkspace::default()));
        let runner = Arc::new(ScriptedRunner::new([vec![Step::line("close done")]]));
        let service =
            AgentService::new(outside(&store, &runner, &workspace), tiny_limits(), Handle::current());
        store.create_next_twice();
        let idempotency = key.map(|key| CommandKey { key: key.to_owned(), body: "p".to_owned() });
        let launch = Launch { prompt: "p".into(), idempotency, ..Launch::default() };
        let launched = service.launch(launch).await;
        let saved = store.list(AgentFilter { limit: 9, ..AgentFilter::default() }, BOUNDS).await.unwrap();
        let saved: Vec<AgentId> = saved.items.iter().map(|listed| listed.agent.id).collect();
        assert_eq!((saved.len(), workspace.own_folders()), (1, saved.clone()), "{launched:?}");
        if key.is_some() {
            let launched = launched.unwrap();
            assert_eq!((launched.agent.id, launched.again), (saved[0], false));
        }
    }
}
