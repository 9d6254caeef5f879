//! Fakes hesitate: they yield to the scheduler. A fake that never yields hides races.

/// The maximum number of times that one hesitation yields.
const TIMES_MAX: u64 = 4;

/// The state of a xorshift generator; never 0. What it gives follows from its seed.
pub(super) struct Hesitation(u64);

impl Hesitation {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `end`.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        // The low bits of a xorshift generator are weak.
        (self.0 >> 24) % end.max(1)
    }

    /// The next time that a fake yields. The future holds no lock on the state.
    pub(super) fn pause(&mut self) -> impl Future<Output = ()> + Send + use<> {
        let times = self.below(TIMES_MAX + 1);
        async move {
            for _ in 0..times {
                tokio::task::yield_now().await;
            }
        }
    }
}
