use std::future::{Ready, ready};
use std::sync::Arc;

use tokenrail_domain::NodeId;

use super::{AppendFault, MemoryStore};
use crate::testing::contract::nodes::Servers;
use crate::testing::samples::{Scribe, launch};
use crate::{IAgentRepository, IJournal, StoreError};

fn fresh() -> Ready<(MemoryStore, ())> {
    ready((MemoryStore::new(7), ()))
}

crate::store_contract!(fresh);

fn shared() -> Ready<(Servers<MemoryStore>, ())> {
    let one = MemoryStore::shared(7);
    let as_node = |number| one.as_node(NodeId(number));
    let (twin, other, third) = (as_node(NodeId::ONLY.0), as_node(2), as_node(3));
    ready((Servers { one, twin, other, third }, ()))
}

crate::nodes_contract!(shared);

#[tokio::test]
async fn a_planned_fault_strikes_once_and_saves_or_not_as_told() {
    let store = MemoryStore::new(1);
    let (agent, turn) = launch(1);
    let mut scribe = Scribe::new(&agent);
    store.create(agent.clone(), turn.clone().into(), None).await.unwrap();
    store.fail_next_append(AppendFault::BeforeSaving(StoreError::Full));
    store.fail_next_append(AppendFault::AfterSaving(StoreError::OutcomeUnknown("lost".into())));
    let start = scribe.start(&turn);

    assert!(matches!(store.append(start.clone()).await, Err(StoreError::Full)));
    assert!(store.saved(agent.id).is_empty());
    assert!(matches!(store.append(start.clone()).await, Err(StoreError::OutcomeUnknown(_))));
    assert_eq!(store.saved(agent.id), start.events.to_vec());
    store.append(start).await.unwrap();
}

#[tokio::test]
async fn it_lets_others_go_first_now_and_then() {
    let store = Arc::new(MemoryStore::new(3));
    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    let call = |name: usize| {
        let (store, order) = (store.clone(), order.clone());
        async move {
            for _ in 0..20 {
                store.check().await.unwrap();
                order.lock().unwrap().push(name);
            }
        }
    };
    tokio::join!(call(0), call(1));
    let order = order.lock().unwrap();
    let alternating = order.iter().enumerate().all(|(at, name)| at % 2 == *name);
    assert!(!alternating, "the schedule varies: {order:?}");
}
