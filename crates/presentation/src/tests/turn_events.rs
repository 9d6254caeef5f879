//! Readers of one turn.

use std::time::Duration;

use serde_json::json;
use tokenrail_domain::{AgentId, Sequence, Turn, TurnNumber};
use tokio::time::timeout;

use super::harness::Harness;
use crate::vocabularies::turns::turn_events::TurnEvents;

const PATIENCE: Duration = Duration::from_secs(30);

/// A reader that begins before the turn sees what an agent prints while the turn is queued.
#[actix_web::test]
async fn what_is_known_of_a_queued_turn_does_not_wait_for_its_beginning() {
    let harness = Harness::new();
    let id = harness.launch("ask in vain").await;
    let agent: AgentId = id.parse().unwrap();
    let body = json!({"content": "say b"}).to_string();
    assert_eq!(harness.post(&format!("/api/agents/{id}/messages"), &body).await.status, 202);
    while harness.service.get(agent).await.unwrap().head == Sequence::START {
        tokio::task::yield_now().await;
    }
    let queued = harness.service.turn(agent, TurnNumber::FIRST.next()).await.unwrap().unwrap();
    let queued = Turn { first_sequence: Some(Sequence::START.next()), ..queued };
    let mut events = TurnEvents::follow(&harness.api, agent, &queued).await.unwrap();
    let known = timeout(PATIENCE, events.known()).await.expect("it does not wait").unwrap();
    assert!(known.is_none(), "all events are of the turn before");
}
