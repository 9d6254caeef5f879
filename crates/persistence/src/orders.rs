//! How a caller waits until a writer answers its order.

use tokenrail_ports::StoreError;
use tokio::sync::{mpsc, oneshot};

type Answer<T> = Result<T, StoreError>;

/// Sends an order to a writer and waits for the answer.
///
/// # Errors
/// The writer's answer, or [`StoreError::Unavailable`] if the writer has ended.
pub(crate) async fn ask<O, T>(
    orders: &mpsc::Sender<O>,
    order: O,
    mut answer: oneshot::Receiver<Answer<T>>,
) -> Answer<T> {
    if orders.send(order).await.is_err() {
        return Err(closed());
    }
    let answered = tokio::select! {
        biased;
        answered = &mut answer => answered.ok(),
        // An order that was sent at the very moment of the end may stay in the channel as long as there is a sender.
        () = orders.closed() => answer.try_recv().ok(),
    };
    answered.unwrap_or_else(|| Err(closed()))
}

/// The answer of a store that was closed.
pub(crate) fn closed() -> StoreError {
    StoreError::Unavailable("the database is closed".into())
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn an_order_that_a_writer_never_takes_is_answered_when_the_writer_ends() {
        let (orders, mut taken) = mpsc::channel(1);
        let (reply, answer) = oneshot::channel::<Answer<()>>();
        let mut asked = pin!(ask(&orders, reply, answer));
        let mut context = Context::from_waker(Waker::noop());
        assert!(asked.as_mut().poll(&mut context).is_pending());
        assert_eq!(taken.len(), 1);
        taken.close();
        let answered = asked.poll(&mut context);
        assert!(matches!(answered, Poll::Ready(Err(StoreError::Unavailable(_)))));
    }
}
