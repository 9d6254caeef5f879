//! What goes out to one client: at once, or collected for a while.

use std::collections::VecDeque;
use std::mem;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use crate::frames::{CHUNK_BYTES, FrameWriter};

/// What goes out to one client. It is filled only when it is empty, by what the client or one event brings about:
/// so its bound is one page, or one batch.
pub(crate) struct Outbox {
    ready: VecDeque<Bytes>,
    /// How long frames are collected.
    wait: Option<Duration>,
    /// Bytes of collected frames after which nothing is waited for.
    batch_bytes_max: usize,
    batch: Vec<Bytes>,
    batch_bytes: usize,
    due: Option<Instant>,
}

impl Outbox {
    pub(crate) fn new(wait: Option<Duration>, batch_bytes_max: usize) -> Self {
        Self { ready: VecDeque::new(), wait, batch_bytes_max, batch: Vec::new(), batch_bytes: 0, due: None }
    }

    /// What goes out next: at most [`CHUNK_BYTES`].
    pub(crate) fn next(&mut self) -> Option<Bytes> {
        let first = self.ready.front_mut()?;
        if CHUNK_BYTES < first.len() {
            return Some(first.split_to(CHUNK_BYTES));
        }
        self.ready.pop_front()
    }

    /// When the batch is to be flushed.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Sends a control frame: it never waits.
    pub(crate) fn control(&mut self, frame: Bytes) {
        self.ready.push_back(frame);
    }

    /// Sends text frames, or collects them.
    pub(crate) fn push(&mut self, frames: Bytes) {
        let Some(wait) = self.wait else {
            self.ready.push_back(frames);
            return;
        };
        self.batch_bytes += frames.len();
        self.batch.push(frames);
        self.due.get_or_insert_with(|| Instant::now() + wait);
        if self.batch_bytes_max <= self.batch_bytes {
            self.flush();
        }
    }

    /// Sends what was collected.
    pub(crate) fn flush(&mut self) {
        self.due = None;
        self.batch_bytes = 0;
        let batch = mem::take(&mut self.batch);
        if !batch.is_empty() {
            let mut out = FrameWriter::default();
            out.batch(&batch);
            self.ready.push_back(out.into_bytes());
        }
    }
}
