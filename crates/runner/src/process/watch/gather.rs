//! Gathers the events of inotify: all of them are read before any run is woken, so that each run is woken once.

use std::collections::HashSet;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;

use rustix::fs::inotify::{Event, ReadFlags, Reader, WatchFlags};
use rustix::io::{Errno, Result};

use super::planted;
use crate::run_folder::RunFolder;

/// The awaited events: the spool has grown, or one of the JSON files has appeared.
pub(super) const AWAITED: WatchFlags =
    WatchFlags::MODIFY.union(WatchFlags::MOVED_TO).union(WatchFlags::ONLYDIR);

/// How much is read from inotify at once: several hundred events.
const READ_BYTES: usize = 16 << 10;
/// After this many events the runs are woken, even if there are more. The kernel queues as many by default.
const MOST_EVENTS: usize = 16_384;

/// Whether inotify has events that were not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unread {
    None,
    Some,
}

/// The runs to wake.
pub(super) struct Gathered {
    buffer: Vec<MaybeUninit<u8>>,
    /// By watch descriptor.
    pub(super) changed: HashSet<i32>,
    /// Events were lost, so every run must check its folder.
    pub(super) lost: bool,
}

impl Gathered {
    pub(super) fn new() -> Self {
        Self { buffer: vec![MaybeUninit::uninit(); READ_BYTES], changed: HashSet::new(), lost: false }
    }

    /// Reads the events that exist, and returns whether there are more. After an error, the events that were read
    /// before it are kept.
    pub(super) fn read(&mut self, inotify: impl AsFd) -> Result<Unread> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut events = Reader::new(inotify, &mut buffer);
        let mut taken = 0;
        let read = loop {
            // Not before the reader's buffer is empty: dropping the reader would lose the events in it.
            if MOST_EVENTS <= taken && events.is_buffer_empty() {
                break Ok(Unread::Some);
            }
            match events.next() {
                Ok(event) => self.take(&event),
                Err(Errno::AGAIN) => break Ok(Unread::None),
                Err(Errno::INTR) => {}
                Err(error) => break Err(error),
            }
            taken += 1;
        };
        self.buffer = buffer;
        self.lost |= read.is_err();
        read
    }

    fn take(&mut self, event: &Event<'_>) {
        let events = event.events();
        self.lost |= events.contains(ReadFlags::QUEUE_OVERFLOW);
        let is_spool =
            || event.file_name().is_some_and(|name| name.to_bytes() == RunFolder::SPOOL.as_bytes());
        // A run need not know of standard error, nor of files that are still being written. It must know if its folder
        // is gone.
        if !events.contains(ReadFlags::MODIFY) || is_spool() {
            planted::forget_others(&mut self.changed);
            self.changed.insert(event.wd());
        }
    }

    pub(super) fn clear(&mut self) {
        self.changed.clear();
        self.lost = false;
    }
}
