//! Waits for many futures, always in the same order.

use std::pin::Pin;
use std::task::Poll;

/// Waits for all of them. Each poll polls all of them in order, so the order of their wake-ups has no influence.
pub(crate) async fn join_all<F: Future<Output = ()>>(futures: Vec<F>) {
    let mut futures: Vec<Option<Pin<Box<F>>>> = futures.into_iter().map(|it| Some(Box::pin(it))).collect();
    std::future::poll_fn(move |context| {
        let mut ready = Poll::Ready(());
        for slot in &mut futures {
            match slot.as_mut().map(|future| future.as_mut().poll(context)) {
                Some(Poll::Pending) => ready = Poll::Pending,
                Some(Poll::Ready(())) => *slot = None,
                None => {}
            }
        }
        ready
    })
    .await;
}
