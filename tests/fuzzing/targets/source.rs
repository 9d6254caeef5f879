//! Choices that are taken from the bytes of an input, so that the input alone determines a run.

/// Reads an input from its front. After its end come zeros.
pub(crate) struct Source<'a>(&'a [u8]);

impl<'a> Source<'a> {
    pub(crate) fn new(data: &'a [u8]) -> Self {
        Self(data)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let Some((byte, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *byte
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u8) -> u8 {
        self.byte() % bound
    }

    /// Up to `length` bytes.
    pub(crate) fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        taken
    }

    pub(crate) fn rest(self) -> &'a [u8] {
        self.0
    }
}

/// Cuts bytes into pieces. Some are empty and most are short. The cuts follow from `seed` and the length.
pub(crate) fn pieces(data: &[u8], seed: u8) -> Vec<&[u8]> {
    let mut state = u64::from(seed) << 32 | data.len() as u64 | 1;
    let mut pieces = Vec::new();
    let mut rest = data;
    while !rest.is_empty() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let random = (state >> 33) as usize;
        let length = if random.is_multiple_of(4) { random >> 8 & 0xff } else { random >> 8 & 7 };
        let (piece, after) = rest.split_at(length.min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    pieces
}
