//! The output of one client: sent at once, throttled, or collected into batches.

use std::collections::VecDeque;
use std::mem;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use crate::frames::{CHUNK_BYTES, FrameWriter};
use crate::vocabularies::native::ws::throttle::Throttle;
use crate::vocabularies::native::ws::wishes::Pace;
use crate::vocabularies::native::{PageFrames, Piece};

/// The output of one client. Frames are added only when none is ready to be sent, and only the frames of one wake-up of
/// the connection. So it holds at most about one page or one batch.
pub(crate) struct Outbox {
    ready: VecDeque<Bytes>,
    /// Throttles text, before frames are collected.
    throttle: Option<Throttle>,
    /// How long frames are collected.
    wait: Option<Duration>,
    /// When this many bytes of frames wait, they are sent at once.
    batch_bytes_max: usize,
    batch: Vec<Bytes>,
    batch_bytes: usize,
    due: Option<Instant>,
}

impl Outbox {
    pub(crate) fn new(wait: Option<Duration>, pace: Option<Pace>, batch_bytes_max: usize) -> Self {
        Self {
            ready: VecDeque::new(),
            throttle: pace.map(Throttle::new),
            wait,
            batch_bytes_max,
            batch: Vec::new(),
            batch_bytes: 0,
            due: None,
        }
    }

    /// The bytes to send next: at most [`CHUNK_BYTES`]. `Connection::next` (`connection.rs`) calls it and returns the
    /// bytes. `ws.rs` makes a stream of them, which is the body of the response (`websocket.rs` says who polls it).
    pub(crate) fn next(&mut self) -> Option<Bytes> {
        let first = self.ready.front_mut()?;
        if CHUNK_BYTES < first.len() {
            return Some(first.split_to(CHUNK_BYTES));
        }
        self.ready.pop_front()
    }

    /// When waiting output is due. Then call [`Outbox::let_out`].
    pub(crate) fn due(&self) -> Option<Instant> {
        let throttled = self.throttle.as_ref().and_then(Throttle::due);
        self.due.into_iter().chain(throttled).min()
    }

    /// Whether so much text waits at the throttle that no more events should be read.
    pub(crate) fn is_full(&self) -> bool {
        self.throttle.as_ref().is_some_and(Throttle::is_full)
    }

    /// Queues a control frame, which is never delayed.
    pub(crate) fn control(&mut self, frame: Bytes) {
        self.ready.push_back(frame);
    }

    /// Queues the frames of events.
    pub(crate) fn say(&mut self, frames: PageFrames) {
        match frames {
            PageFrames::Frames(frames) => self.push(frames),
            PageFrames::Pieces(pieces) => {
                for piece in pieces {
                    match (piece, &mut self.throttle) {
                        (Piece::Frames(frames), _) => self.push(frames),
                        (Piece::Text(text), Some(throttle)) => throttle.text(text),
                        (Piece::Text(text), None) => self.push(text.into_frame()),
                    }
                }
            }
        }
    }

    /// Queues frames, after the text that waits.
    pub(crate) fn push(&mut self, frames: Bytes) {
        match &mut self.throttle {
            Some(throttle) if !throttle.is_empty() => {
                throttle.frames(frames);
                if self.batch_bytes_max <= throttle.frame_bytes() {
                    self.let_all_through();
                }
            }
            _ => self.collect(frames),
        }
    }

    /// Queues the output that is due.
    pub(crate) fn let_out(&mut self) {
        let now = Instant::now();
        if let Some(throttle) = self.throttle.as_mut().filter(|it| it.due().is_some_and(|due| due <= now)) {
            let out = throttle.let_out();
            for frames in out {
                self.collect(frames);
            }
        }
        if self.due.is_some_and(|due| due <= now) {
            self.flush();
        }
    }

    /// Queues all waiting output, before the connection closes.
    pub(crate) fn let_all_out(&mut self) {
        self.let_all_through();
        self.flush();
    }

    fn let_all_through(&mut self) {
        let out = self.throttle.as_mut().map(Throttle::let_all_out);
        for frames in out.into_iter().flatten() {
            self.collect(frames);
        }
    }

    /// Queues frames, or collects them.
    fn collect(&mut self, frames: Bytes) {
        if frames.is_empty() {
            return;
        }
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

    /// Queues the collected frames as one batch.
    fn flush(&mut self) {
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
