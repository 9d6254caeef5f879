//! Random numbers that follow from a seed.

/// A random generator that is determined by its seed (`SplitMix64`).
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    /// One generator for each purpose: draws from one never change the draws of another.
    pub(crate) fn of(seed: u64, purpose: &str) -> Self {
        Self(seed ^ hash(purpose.as_bytes()))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to `n`, excluding `n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    /// From `least` to `most`, both included.
    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least) + 1)
    }

    pub(crate) fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// FNV-1a.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| fold(hash, u64::from(*byte)))
}

/// One more step of the hash.
pub(crate) fn fold(hash: u64, more: u64) -> u64 {
    (hash ^ more).wrapping_mul(0x0100_0000_01b3)
}
