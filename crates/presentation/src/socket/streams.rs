//! The streams of one web worker, polled by one task.
//!
//! Tokens are announced by another thread. If each stream were a task of the worker's runtime, each token would wake
//! the worker for each of its followers: a system call each time, and on a busy machine a change of threads. Here, the
//! announcing thread only marks the streams that have something to do, and the worker is woken once for all of them.
//! A worker with a single stream is woken directly, because there is no other stream to wait for.

use std::cell::RefCell;
use std::future::{pending, poll_fn};
use std::io;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, ThreadId};

use futures_util::FutureExt as _;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use futures_util::task::AtomicWaker;
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};
use tokio::task::yield_now;

/// The streams of one web worker. Clones share them.
#[derive(Clone)]
pub(crate) struct Streams(Rc<Shared>);

struct Shared {
    /// Streams that the task has not taken over yet.
    arrived: RefCell<Vec<LocalBoxFuture<'static, ()>>>,
    wake_up: Arc<WakeUp>,
}

/// Wakes the task that polls the streams of one web worker.
struct WakeUp {
    /// The thread of the worker.
    thread: ThreadId,
    task: AtomicWaker,
    /// How many streams have not ended.
    streams: AtomicUsize,
    /// A wake-up from another thread is on its way.
    asked: AtomicBool,
    /// Notified when `asked` becomes true, and at the end.
    told: Notify,
    /// The worker has ended.
    ended: AtomicBool,
}

impl Streams {
    /// Starts the task that polls the streams, on the runtime of this thread. Wake-ups of other threads go through a
    /// task on `runtime`, which should be the one that announces tokens.
    pub(crate) fn start(runtime: &Handle) -> Self {
        let wake_up = Arc::new(WakeUp {
            thread: thread::current().id(),
            task: AtomicWaker::new(),
            streams: AtomicUsize::new(0),
            asked: AtomicBool::new(false),
            told: Notify::new(),
            ended: AtomicBool::new(false),
        });
        // Not on the application's tracker: a stop waits for that one first, and streams must be woken until they end.
        drop(runtime.spawn(pass_on(Arc::clone(&wake_up))));
        let shared = Rc::new(Shared { arrived: RefCell::default(), wake_up });
        drop(actix_web::rt::spawn(poll_all(Rc::clone(&shared))));
        Self(shared)
    }

    /// Polls a stream until its end. Boxed, because the caller lives as long as the stream and would otherwise contain
    /// it.
    ///
    /// # Errors
    /// As the stream, and if it panics.
    pub(crate) fn run(
        &self,
        stream: LocalBoxFuture<'static, io::Result<()>>,
    ) -> impl Future<Output = io::Result<()>> + use<> {
        let (tell, ended) = oneshot::channel();
        let told = async move {
            let end = stream.await;
            // Nobody waits for the end if the worker is stopping.
            let _ = tell.send(end);
        };
        // A panic must end this stream only. Its caller finds that `tell` is gone.
        let wake_up = Arc::clone(&self.0.wake_up);
        let told = AssertUnwindSafe(told).catch_unwind().map(move |_| {
            wake_up.streams.fetch_sub(1, Ordering::Relaxed);
        });
        self.0.wake_up.streams.fetch_add(1, Ordering::Relaxed);
        self.0.arrived.borrow_mut().push(told.boxed_local());
        self.0.wake_up.task.wake();
        ended.map(|end| end.unwrap_or_else(|_| Err(io::Error::other("the stream was dropped"))))
    }
}

async fn poll_all(shared: Rc<Shared>) {
    let waker = Waker::from(Arc::clone(&shared.wake_up));
    let mut streams = FuturesUnordered::new();
    // `FuturesUnordered` wakes its own task if it has polled as many futures as it holds. With one more, which never
    // wakes, that does not happen.
    streams.push(pending().boxed_local());
    poll_fn(|cx| {
        shared.wake_up.task.register(cx.waker());
        streams.extend(shared.arrived.take());
        // It ends early when the task has used up its turn, and then wakes itself. A stream is a `Streaming::run`
        // (`streaming.rs`).
        while let Poll::Ready(Some(())) = streams.poll_next_unpin(&mut Context::from_waker(&waker)) {}
        Poll::<()>::Pending
    })
    .await;
}

/// Wakes the worker if another thread has asked for that.
async fn pass_on(wake_up: Arc<WakeUp>) {
    while !wake_up.ended.load(Ordering::Acquire) {
        wake_up.told.notified().await;
        // Tasks that are ready run first. They may announce more tokens, for other streams of the same worker.
        yield_now().await;
        // Cleared only after this task has woken. A stream that is marked later asks for another wake-up.
        wake_up.asked.swap(false, Ordering::AcqRel);
        wake_up.task.wake();
    }
}

impl Wake for WakeUp {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let is_alone = self.streams.load(Ordering::Relaxed) <= 1;
        if is_alone || thread::current().id() == self.thread {
            self.task.wake();
        } else if !self.asked.swap(true, Ordering::AcqRel) {
            self.told.notify_one();
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.wake_up.ended.store(true, Ordering::Release);
        self.wake_up.told.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::future::join_all;
    use tokio::runtime::Builder;
    use tokio::sync::{mpsc, watch};
    use tokio::time::timeout;

    use super::*;

    /// Reaching it is a failure.
    const PATIENCE: Duration = Duration::from_secs(30);

    #[actix_web::test]
    async fn no_wake_up_of_another_thread_is_lost() {
        for streams in [1, 2, 50] {
            wake_up_often(streams).await;
        }
    }

    /// Wakes this many streams again and again. Fails if one of them does not wake.
    async fn wake_up_often(count: usize) {
        const NEWEST: u32 = 2000;
        let announcing = Builder::new_multi_thread().worker_threads(2).build().unwrap();
        let streams = Streams::start(announcing.handle());
        let (bells, ears): (Vec<_>, Vec<_>) = (0..count).map(|_| watch::channel(0)).unzip();
        let (tell, mut heard) = mpsc::unbounded_channel();
        announcing.spawn(async move {
            for number in 1..=NEWEST {
                for bell in &bells {
                    bell.send_replace(number);
                }
                // Nothing rings again until all have heard this number, so no later bell makes up for a lost one.
                for _ in 0..count {
                    heard.recv().await;
                }
            }
        });
        let until_newest = ears.into_iter().map(|mut ear| {
            let tell = tell.clone();
            let stream = async move {
                while *ear.borrow() < NEWEST {
                    ear.changed().await.map_err(io::Error::other)?;
                    tell.send(()).map_err(io::Error::other)?;
                }
                Ok(())
            };
            streams.run(stream.boxed_local())
        });
        let ends = timeout(PATIENCE, join_all(until_newest)).await.expect("a wake-up is lost");
        ends.into_iter().for_each(Result::unwrap);
        announcing.shutdown_background();
    }

    #[actix_web::test]
    async fn a_stream_that_panics_ends_alone() {
        let streams = Streams::start(&Handle::current());
        let (bell, mut ear) = watch::channel(false);
        let other = streams.run(async move { ear.changed().await.map_err(io::Error::other) }.boxed_local());
        let panics = streams.run(async { panic!("as it should") }.boxed_local());
        let ring = async {
            assert!(panics.await.is_err());
            bell.send_replace(true);
        };
        let (ended, ()) = futures_util::future::join(other, ring).await;
        ended.unwrap();
    }

    #[actix_web::test]
    async fn a_stream_that_arrives_while_all_others_wait_is_polled() {
        let streams = Streams::start(&Handle::current());
        let waits = actix_web::rt::spawn({
            let streams = streams.clone();
            async move { streams.run(std::future::pending().boxed_local()).await }
        });
        for _ in 0..3 {
            yield_now().await;
            streams.run(async { Ok(()) }.boxed_local()).await.unwrap();
        }
        waits.abort();
    }
}
