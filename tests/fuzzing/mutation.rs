//! Invalid inputs, made from valid ones.

/// Longer inputs find nothing more than shorter ones, and are slower.
const INPUT_BYTES_MAX: usize = 4096;

/// Changes inputs at random. The same seed makes the same changes.
pub(crate) struct Mutator(u64);

impl Mutator {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// Xorshift: random enough for choices, and as fast as the targets.
    fn next(&mut self) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) as usize >> 16
    }

    fn below(&mut self, bound: usize) -> usize {
        self.next() % bound.max(1)
    }

    fn range(&mut self, length: usize, longest: usize) -> std::ops::Range<usize> {
        let begin = self.below(length + 1);
        let end = begin + self.below((length - begin).min(longest) + 1);
        begin..end
    }

    /// One of the inputs, changed up to eight times.
    pub(crate) fn input(&mut self, corpus: &[Vec<u8>], words: &[&str], out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&corpus[self.below(corpus.len())]);
        for _ in 0..=self.below(8) {
            self.change(corpus, words, out);
        }
        out.truncate(INPUT_BYTES_MAX);
    }

    fn change(&mut self, corpus: &[Vec<u8>], words: &[&str], out: &mut Vec<u8>) {
        let at = self.below(out.len() + 1);
        match self.below(10) {
            0 if at < out.len() => out[at] ^= 1 << self.below(8),
            1 => {
                let byte = self.next() as u8;
                out.insert(at, byte);
            }
            2 if at < out.len() => out[at] = [0, 1, 0x7f, 0x80, 0xff, b'\n', b'\r', b'"'][self.below(8)],
            3 => drop(out.drain(self.range(out.len(), 64))),
            4 => {
                let again = self.range(out.len(), 256);
                let again = out[again].to_vec();
                out.splice(at..at, again);
            }
            5 => {
                let other = &corpus[self.below(corpus.len())];
                let part = other[self.range(other.len(), 512)].to_vec();
                out.splice(at..at, part);
            }
            6 => {
                let other = &corpus[self.below(corpus.len())];
                let from = self.below(other.len() + 1);
                out.truncate(at);
                out.extend_from_slice(&other[from..]);
            }
            7 | 8 if !words.is_empty() => {
                let word = words[self.below(words.len())].bytes();
                let end = if self.below(2) == 0 { at } else { self.below(out.len() - at + 1) + at };
                out.splice(at..end.min(at + 32), word);
            }
            _ => self.lines(out),
        }
    }

    /// Repeats a line, removes one, or swaps two.
    fn lines(&mut self, out: &mut Vec<u8>) {
        let mut lines: Vec<&[u8]> = out.split_inclusive(|byte| *byte == b'\n').collect();
        if lines.is_empty() {
            return;
        }
        let (one, other) = (self.below(lines.len()), self.below(lines.len()));
        match self.below(3) {
            0 => lines.insert(other, lines[one]),
            1 => drop(lines.remove(one)),
            _ => lines.swap(one, other),
        }
        *out = lines.concat();
    }
}

#[test]
fn the_same_seed_makes_the_same_inputs() {
    let corpus = [b"one\ntwo\n".to_vec(), Vec::new(), b"\xff".to_vec()];
    let inputs = |seed| {
        let (mut mutator, mut input) = (Mutator::new(seed), Vec::new());
        let inputs = (0..1000).map(|_| {
            mutator.input(&corpus, &["word"], &mut input);
            input.clone()
        });
        inputs.collect::<Vec<_>>()
    };
    assert_eq!(inputs(2), inputs(2));
    let some: std::collections::BTreeSet<_> = inputs(2).into_iter().chain(inputs(4)).collect();
    assert!(1000 < some.len(), "{} different ones", some.len());
    assert!(some.iter().all(|input| input.len() <= INPUT_BYTES_MAX));
}
