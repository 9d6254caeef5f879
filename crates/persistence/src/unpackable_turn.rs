//! What every database does with a turn that cannot be packed.

use tokenrail_domain::Agent;
use tokenrail_ports::{IAgentRepository, IJournal, StoreError};

/// The turn of `broken` cannot be packed. `loose` counts the agents with turns that are not packed.
pub(crate) async fn it_does_not_hold_up_the_others(
    store: &(impl IJournal + IAgentRepository),
    broken: &Agent,
    loose: impl Fn() -> i64,
) {
    for _ in 0..2 {
        let refused = loop {
            match store.compact_next().await {
                Ok(more) => assert!(more, "one is left"),
                Err(error) => break error,
            }
        };
        assert!(matches!(refused, StoreError::Corrupt(_)), "{refused:?}");
    }
    assert_eq!(loose(), 1);
    store.purge(broken.id, broken.created_at).await.unwrap();
    while store.compact_next().await.unwrap() {}
    assert_eq!(loose(), 0);
}
