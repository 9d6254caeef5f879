//! What clients learn of a node's own agents that users change at a node whose hints do not arrive.

use tokenrail_domain::{AgentEdit, NewName};

use super::*;
use crate::{KeptLifecycleEvent, UpdateCause};

/// The events that clients get, until none has come during several looks at the store.
async fn told(news: &mut LifecycleReader) -> Vec<Arc<KeptLifecycleEvent>> {
    let mut told = Vec::new();
    while let Ok(next) = tokio::time::timeout(Duration::from_secs(10), news.next()).await {
        told.extend(next.expect("the service runs").ok());
    }
    told
}

fn count(told: &[Arc<KeptLifecycleEvent>], is: impl Fn(&LifecycleEvent) -> bool) -> usize {
    told.iter().filter(|kept| is(&kept.event)).count()
}

#[tokio::test(start_paused = true)]
async fn clients_learn_once_what_users_change_at_another_node_with_and_without_hints() {
    for is_broken in [false, true] {
        let two = pair([said("one")]).await;
        let mut news = two.home.service.lifecycle_events();
        told(&mut news).await;
        if is_broken {
            two.other_bus.break_off();
        }
        let id = two.home.launch("hi").await;
        let at_launch = told(&mut news).await;
        assert_eq!(count(&at_launch, |event| matches!(event, LifecycleEvent::Created { .. })), 1);
        let is_edit = |event: &LifecycleEvent| {
            matches!(event, LifecycleEvent::Updated { cause: UpdateCause::Edit, .. })
        };
        assert_eq!(count(&at_launch, is_edit), 0, "nobody has changed it: {at_launch:?}");
        for (node, name) in [(&two.other, "there"), (&two.home, "here")] {
            let name = Some(NewName::Text(name.to_owned()));
            node.service.edit(id, AgentEdit { name, ..AgentEdit::default() }).await.unwrap();
            let told = told(&mut news).await;
            assert_eq!(count(&told, is_edit), 1, "broken: {is_broken}; {told:?}");
        }
        two.other.service.delete(id, false).await.unwrap();
        let told = told(&mut news).await;
        let deleted = |event: &LifecycleEvent| matches!(event, LifecycleEvent::Deleted { .. });
        assert_eq!(count(&told, deleted), 1, "broken: {is_broken}; {told:?}");
    }
}
