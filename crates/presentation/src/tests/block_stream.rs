//! Event streams that answer a request.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use tokio::time::{sleep, timeout};

use super::harness::Harness;
use crate::frames::CHUNK_BYTES;
use crate::vocabularies::turns::block_stream::{BEAT, BlockSource, streamed};

const PATIENCE: Duration = Duration::from_secs(30);
const ALIVE: Bytes = Bytes::from_static(b": alive\n\n");

/// Gives these blocks, and then events without blocks.
struct Given(VecDeque<Result<Option<Bytes>, &'static str>>);

impl BlockSource for Given {
    async fn more(&mut self) -> Result<Option<Bytes>, &'static str> {
        if let Some(given) = self.0.pop_front() {
            return given;
        }
        sleep(Duration::from_millis(1)).await;
        Ok(Some(Bytes::new()))
    }

    fn beat(&self) -> Bytes {
        ALIVE
    }
}

/// What a client takes of a stream, at most this many pieces. `None` if the connection is aborted.
async fn taken(
    harness: &Harness,
    given: Vec<Result<Option<Bytes>, &'static str>>,
    silence_ms: u64,
    most: usize,
) -> Vec<Option<Bytes>> {
    let place = harness.api.open_stream([127, 0, 0, 1].into()).unwrap();
    let stream = streamed(Given(given.into()), BEAT, Duration::from_millis(silence_ms), place);
    let pieces = stream.map(Result::ok).take(most).collect();
    timeout(PATIENCE, pieces).await.unwrap()
}

#[actix_web::test]
async fn a_source_that_is_over_ends_its_stream_and_one_that_breaks_aborts_it() {
    let harness = Harness::new();
    let long: Bytes = vec![b'x'; CHUNK_BYTES + 1].into();
    let (begin, end) = (long.slice(..CHUNK_BYTES), long.slice(CHUNK_BYTES..));
    let given = || vec![Ok(Some(Bytes::from_static(b"a"))), Ok(Some(Bytes::new())), Ok(Some(long.clone()))];
    let all = [BEAT, Bytes::from_static(b"a"), begin, end].map(Some);
    let hour = 3_600_000;
    let over = [given(), vec![Ok(None)]].concat();
    assert_eq!(taken(&harness, over, hour, 9).await, all);
    let broken = [given(), vec![Err("it broke")]].concat();
    assert_eq!(taken(&harness, broken, hour, 9).await, [&all[..], &[None]].concat());
    assert_eq!(harness.api.open_streams(), 0, "the places are free again");
}

#[actix_web::test]
async fn events_without_blocks_are_silence() {
    let pieces = taken(&Harness::new(), Vec::new(), 5, 3).await;
    assert_eq!(pieces, [BEAT, ALIVE, ALIVE].map(Some));
}
