//! The streams of a payload.

use bytes::Bytes;

use super::MalformedBatch;
use super::bytes_io::{StreamReader, put_varint};

/// The values to write, separated by kind.
pub(super) struct Streams {
    /// How many events there are.
    pub(super) counts: Vec<u8>,
    /// One byte per event: its kind.
    pub(super) kinds: Vec<u8>,
    /// Milliseconds since the previous event, in zigzag encoding.
    pub(super) times: Vec<u8>,
    /// The length plus 1. 0 if the event has no raw line.
    pub(super) raw_lengths: Vec<u8>,
    /// Lengths of texts.
    pub(super) lengths: Vec<u8>,
    /// Numbers and flags.
    pub(super) numbers: Vec<u8>,
    pub(super) texts: Vec<u8>,
    /// Codec 2 only: the UUIDs in place of which `raw` has marks, 16 bytes each.
    pub(super) uuids: Vec<u8>,
    pub(super) raw: Vec<u8>,
    /// The position at which the text of the previous delta was found in its raw line. Not written.
    pub(super) text_at: usize,
}

/// The same streams, for reading.
pub(super) struct StreamReaders {
    pub(super) counts: StreamReader,
    pub(super) kinds: StreamReader,
    pub(super) times: StreamReader,
    pub(super) raw_lengths: StreamReader,
    pub(super) lengths: StreamReader,
    pub(super) numbers: StreamReader,
    pub(super) texts: StreamReader,
    pub(super) uuids: StreamReader,
    pub(super) raw: StreamReader,
}

impl Streams {
    pub(super) fn with_capacity(events: usize, raw_bytes: usize) -> Self {
        Self {
            counts: Vec::new(),
            kinds: Vec::with_capacity(events),
            times: Vec::with_capacity(2 * events + 8),
            raw_lengths: Vec::with_capacity(2 * events),
            lengths: Vec::with_capacity(2 * events),
            numbers: Vec::with_capacity(2 * events),
            texts: Vec::with_capacity(8 * events),
            uuids: Vec::new(),
            raw: Vec::with_capacity(raw_bytes),
            text_at: 0,
        }
    }

    /// Joins the streams: their lengths, then their contents.
    pub(super) fn join(&self) -> Vec<u8> {
        let parts = self.parts();
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        let mut joined = Vec::with_capacity(bytes + 5 * parts.len());
        for part in parts {
            put_varint(&mut joined, part.len() as u64);
        }
        for part in parts {
            joined.extend_from_slice(part);
        }
        joined
    }

    fn parts(&self) -> [&[u8]; 9] {
        let Self { counts, kinds, times, raw_lengths, lengths, numbers, texts, uuids, raw, text_at: _ } =
            self;
        [counts, kinds, times, raw_lengths, lengths, numbers, texts, uuids, raw]
    }
}

impl StreamReaders {
    /// The inverse of [`Streams::join`], without a copy.
    pub(super) fn split(joined: Bytes) -> Result<Self, MalformedBatch> {
        let mut reader = StreamReader::new(joined);
        let mut lengths = [0; 9];
        for length in &mut lengths {
            *length = reader.varint()?;
        }
        let mut parts = lengths.into_iter().map(|length| reader.bytes(length).map(StreamReader::new));
        let mut next = || parts.next().ok_or(MalformedBatch)?;
        Ok(Self {
            counts: next()?,
            kinds: next()?,
            times: next()?,
            raw_lengths: next()?,
            lengths: next()?,
            numbers: next()?,
            texts: next()?,
            uuids: next()?,
            raw: next()?,
        })
    }
}
