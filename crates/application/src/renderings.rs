//! The renderings of a batch for clients. Each one is made once, for all readers that need it.

use std::any::TypeId;
use std::sync::OnceLock;

use bytes::Bytes;

/// Identifies one way to write a batch for clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RenderingKey {
    of: TypeId,
    form: [u8; 2],
}

impl RenderingKey {
    /// The key for what the writer `T` writes. A writer has one key for each `form`; two writers never share a key.
    pub fn of<T: 'static>(form: [u8; 2]) -> Self {
        Self { of: TypeId::of::<T>(), form }
    }
}

/// A batch as bytes for clients, made once and shared.
#[derive(Debug)]
pub struct Rendering {
    pub bytes: Bytes,
    /// Where in `bytes` each event ends. [`Rendering::GOES_ON`] if an event is written together with the next one.
    pub ends: Vec<usize>,
}

impl Rendering {
    /// Stands for the end of an event that shares its frame with the next one.
    pub const GOES_ON: usize = usize::MAX;

    /// The rendering of the events from the `skip`-th on. `None` if the first of them is written together with the
    /// one before it. A reader with this cursor then needs a rendering of its own.
    pub fn from(&self, skip: usize) -> Option<Bytes> {
        let begin = if skip == 0 { 0 } else { self.ends[skip - 1] };
        (begin != Self::GOES_ON).then(|| self.bytes.slice(begin..))
    }
}

/// The renderings of one batch: a list that only grows, so that readers need no lock. Its length is bounded by the
/// number of keys, of which few are in use at a time.
#[derive(Debug, Default)]
pub(crate) struct Renderings(OnceLock<Box<Entry>>);

#[derive(Debug)]
struct Entry {
    key: RenderingKey,
    rendering: OnceLock<Rendering>,
    next: Renderings,
}

impl Renderings {
    pub(crate) fn get(&self, key: RenderingKey) -> Option<&Rendering> {
        let mut entry = self.0.get()?;
        while entry.key != key {
            entry = entry.next.0.get()?;
        }
        entry.rendering.get()
    }

    /// The length of the longest rendering. `None` if there is none yet.
    pub(crate) fn longest_bytes(&self) -> Option<usize> {
        let entries = std::iter::successors(self.0.get(), |entry| entry.next.0.get());
        entries.filter_map(|entry| entry.rendering.get()).map(|rendering| rendering.bytes.len()).max()
    }

    pub(crate) fn get_or_init(&self, key: RenderingKey, render: impl FnOnce() -> Rendering) -> &Rendering {
        let new = || Box::new(Entry { key, rendering: OnceLock::new(), next: Self::default() });
        let mut entry = self.0.get_or_init(new);
        while entry.key != key {
            entry = entry.next.0.get_or_init(new);
        }
        entry.rendering.get_or_init(render)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct One;
    struct Other;

    #[test]
    fn each_key_has_bytes_of_its_own_however_many_there_are() {
        let renderings = Renderings::default();
        let ones = (0..20).map(|form| RenderingKey::of::<One>([form, 0]));
        let others = (0..20).map(|form| RenderingKey::of::<Other>([form, 0]));
        let keys: Vec<_> = ones.chain(others).collect();
        let rendering = |index: usize| Rendering { bytes: index.to_string().into(), ends: Vec::new() };
        for (index, key) in keys.iter().enumerate() {
            assert!(renderings.get(*key).is_none());
            renderings.get_or_init(*key, || rendering(index));
        }
        for (index, key) in keys.iter().enumerate() {
            let again = renderings.get_or_init(*key, || unreachable!("it is there"));
            assert_eq!(again.bytes, index.to_string());
            assert_eq!(renderings.get(*key).map(|found| found.bytes.clone()), Some(again.bytes.clone()));
        }
    }

    #[test]
    fn readers_at_the_same_time_share_one_rendering_of_each_key() {
        let renderings = Renderings::default();
        let keys = [RenderingKey::of::<One>([0, 0]), RenderingKey::of::<Other>([0, 0])];
        let made = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for turn in 0..8 {
                let (renderings, made) = (&renderings, &made);
                scope.spawn(move || {
                    let key = keys[turn % 2];
                    renderings.get_or_init(key, || {
                        made.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        Rendering { bytes: (turn % 2).to_string().into(), ends: Vec::new() }
                    });
                });
            }
        });
        assert_eq!(made.into_inner(), 2);
        let bytes = keys.map(|key| renderings.get(key).map(|found| found.bytes.clone()));
        assert_eq!(bytes, [Some("0".into()), Some("1".into())]);
    }

    #[test]
    fn the_longest_rendering_counts_whenever_it_was_made() {
        let renderings = Renderings::default();
        assert_eq!(renderings.longest_bytes(), None);
        for (form, text) in [(0, "12"), (1, "12345"), (2, "123")] {
            let rendering = || Rendering { bytes: text.into(), ends: Vec::new() };
            renderings.get_or_init(RenderingKey::of::<One>([form, 0]), rendering);
        }
        assert_eq!(renderings.longest_bytes(), Some(5));
    }
}
