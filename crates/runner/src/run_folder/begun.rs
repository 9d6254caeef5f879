//! How many processes begin on the machine.

use std::fs::File;

use rustix::io::pread;

/// `/proc/loadavg` is shorter.
const LOAD_BYTES: usize = 128;
/// If this many processes and threads begin between two looks, it may be a fork bomb. A build starts fewer in a tenth
/// of a second.
const STORM: u64 = 100;

/// Reads the number of the newest process. The kernel numbers processes and threads one after the other, so the
/// difference is how many have begun. It costs one read.
#[derive(Debug)]
pub(crate) struct Begun {
    load: Option<File>,
    /// As of the last look.
    newest: Option<u64>,
}

impl Begun {
    pub(crate) fn on_this_machine() -> Self {
        Self { load: File::open("/proc/loadavg").ok(), newest: None }
    }

    /// Reads from a file of a test.
    #[cfg(test)]
    pub(crate) fn by(load: File) -> Self {
        Self { load: Some(load), newest: None }
    }

    /// Whether many have begun since the last look. Also true if that is unknown.
    pub(crate) fn is_storm(&mut self) -> bool {
        let newest = newest(self.load.as_ref());
        let begun = begun_since(self.newest, newest);
        self.newest = newest;
        begun.is_none_or(|begun| STORM <= begun)
    }

    /// The number of the newest process, as of the last look.
    pub(crate) fn newest(&self) -> Option<u64> {
        self.newest
    }
}

/// How many have begun between the two. `None` if that is unknown, for example because the numbers have wrapped around.
pub(crate) fn begun_since(before: Option<u64>, now: Option<u64>) -> Option<u64> {
    now.zip(before).and_then(|(now, before)| now.checked_sub(before))
}

/// The number of the newest process or thread, from `/proc/loadavg`.
fn newest(load: Option<&File>) -> Option<u64> {
    let mut text = [0; LOAD_BYTES];
    let read = pread(load?, &mut text, 0).ok()?;
    str::from_utf8(&text[..read]).ok()?.split_ascii_whitespace().next_back()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    /// The numbers begin again now and then, but not several times in a row.
    #[test]
    fn the_kernel_tells_which_process_is_the_newest() {
        let mut begun = Begun::on_this_machine();
        let tells = (0..3).any(|_| {
            let mut child = Command::new("true").spawn().unwrap();
            child.wait().unwrap();
            begun.is_storm();
            begun.newest().is_some_and(|newest| u64::from(child.id()) <= newest)
        });
        assert!(tells, "{begun:?}");
    }

    #[test]
    fn many_that_begin_between_two_looks_are_a_storm() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("loadavg");
        let says = |newest: u64| fs::write(&file, format!("0.00 0.01 0.05 1/90 {newest}\n")).unwrap();
        says(1000);
        let mut begun = Begun::by(File::open(&file).unwrap());
        assert!(begun.is_storm(), "nobody knows yet");
        says(1000 + STORM - 1);
        assert!(!begun.is_storm());
        says(1000 + 2 * STORM - 1);
        assert!(begun.is_storm());
        says(300);
        assert!(begun.is_storm(), "the numbers have begun again");
    }
}
