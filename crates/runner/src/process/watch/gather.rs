//! What inotify has to tell: all of it is read before anybody is woken, and each run is woken once.

use std::collections::HashSet;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use rustix::fs::inotify::{Event, ReadFlags, Reader, WatchFlags};
use rustix::io::{Errno, Result};

use super::planted;
use crate::run_folder::RunFolder;

/// What is asked for: the spool has grown, or one of the JSON files is there.
pub(super) const AWAITED: WatchFlags =
    WatchFlags::MODIFY.union(WatchFlags::MOVED_TO).union(WatchFlags::ONLYDIR);

/// What is read of inotify at once: several hundred events.
const READ_BYTES: usize = 16 << 10;
/// After so many events somebody is woken, though there may be more: as many as the kernel keeps by default.
const MOST_EVENTS: usize = 16_384;

/// The runs that are to be woken.
pub(super) struct Gathered {
    buffer: Vec<MaybeUninit<u8>>,
    /// By watch descriptor.
    pub(super) changed: HashSet<i32>,
    /// Events were lost: everybody is to look.
    pub(super) lost: bool,
}

impl Gathered {
    pub(super) fn new() -> Self {
        Self { buffer: vec![MaybeUninit::uninit(); READ_BYTES], changed: HashSet::new(), lost: false }
    }

    /// Reads what there is. On an error too, what was read until then is here.
    pub(super) fn read(&mut self, inotify: &OwnedFd) -> Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut events = Reader::new(inotify, &mut buffer);
        let mut taken = 0;
        let read = loop {
            // What the reader holds already would be gone with it.
            if MOST_EVENTS <= taken && events.is_buffer_empty() {
                break Ok(());
            }
            match events.next() {
                Ok(event) => self.take(&event),
                Err(Errno::AGAIN) => break Ok(()),
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
        // Standard error and files that are still being written tell a run nothing. A folder that is gone does.
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
