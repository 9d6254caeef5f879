//! A batch of events as one payload, and back: exactly, to the last byte of the raw lines.
//!
//! A payload is a header with the lengths of its streams, then the streams. Each stream holds one kind of value of
//! all events (see [`Streams`]): writing that costs nothing, and zstd compresses it much better.
//!
//! | codec | payload |
//! | --- | --- |
//! | 1, packed | the streams uncompressed: written with every append, at about the speed of a copy |
//! | 2, tight | the uncompressed length, then one zstd frame of the streams, without what repeats in raw lines: UUIDs and texts |
//! | 3, quick | the uncompressed length, then one zstd frame of the payload of codec 1: written with every append where the network and the log cost more than the processor |
//!
//! The first sequence number and the turn are columns of the row and not part of the payload.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`streams`] | the streams of a batch: written and read |
//! | [`body`] | the bodies of events, in the streams |
//! | [`fields`], [`bytes_io`] | numbers, texts and flags in the streams; numbers and slices in bytes |
//! | [`uuid_text`] | UUIDs in raw lines, as 16 bytes |

mod body;
mod bytes_io;
mod fields;
mod streams;
#[cfg(test)]
mod tests;
mod uuid_text;

use bytes::Bytes;
use tokenrail_domain::{Event, Sequence, Timestamp, TurnNumber};

use self::bytes_io::{StreamReader, put_varint, unzigzag, zigzag};
use self::streams::{StreamReaders, Streams};

/// The maximum uncompressed length: far above any real block, so that a corrupt length cannot exhaust memory.
const UNPACKED_BYTES_MAX: usize = 1 << 30;

/// Compresses repetitive English well, and is fast enough to stay far behind the disk.
const ZSTD_LEVEL: i32 = 12;

/// For [`pack_quick`]: it runs on the way of every token.
const QUICK_ZSTD_LEVEL: i32 = 1;

/// A shorter payload is not compressed by [`pack_quick`]: it would hardly become shorter.
const QUICK_BYTES_MIN: usize = 1 << 10;

/// The encoding of a payload; the value of the column `codec`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Codec {
    Packed = 1,
    Tight = 2,
    Quick = 3,
}

impl Codec {
    pub(crate) fn from_number(number: i64) -> Option<Self> {
        [Self::Packed, Self::Tight, Self::Quick].into_iter().find(|codec| *codec as i64 == number)
    }
}

/// Whether the text of a delta is searched in its raw line, which nearly always contains it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextSearch {
    Off,
    On,
}

/// The payload is not one that was written here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cannot unpack a batch of events")]
pub(crate) struct MalformedBatch;

/// Packs a batch with codec 1.
pub(crate) fn pack(events: &[Event]) -> Vec<u8> {
    streams_of(events, TextSearch::Off).join()
}

/// Packs a batch with codec 3, or with codec 1 if it is short.
pub(crate) fn pack_quick(events: &[Event]) -> std::io::Result<(Codec, Vec<u8>)> {
    let packed = pack(events);
    if packed.len() < QUICK_BYTES_MIN {
        return Ok((Codec::Packed, packed));
    }
    Ok((Codec::Quick, compressed(&packed, QUICK_ZSTD_LEVEL)?))
}

/// Packs a batch with codec 2.
pub(crate) fn pack_tight(events: &[Event]) -> std::io::Result<Vec<u8>> {
    let mut streams = streams_of(events, TextSearch::On);
    (streams.raw, streams.uuids) = uuid_text::take_out(&streams.raw);
    tighten(&streams.join())
}

/// The uncompressed length, then the streams compressed.
pub(crate) fn tighten(joined: &[u8]) -> std::io::Result<Vec<u8>> {
    compressed(joined, ZSTD_LEVEL)
}

fn compressed(joined: &[u8], level: i32) -> std::io::Result<Vec<u8>> {
    let mut payload = Vec::with_capacity(joined.len() / 8);
    put_varint(&mut payload, joined.len() as u64);
    payload.extend(zstd::bulk::compress(joined, level)?);
    Ok(payload)
}

/// Opens a payload. Its events are unpacked one by one.
pub(crate) fn unpack(
    codec: Codec,
    first: Sequence,
    turn: TurnNumber,
    payload: Vec<u8>,
) -> Result<UnpackedEvents, MalformedBatch> {
    let mut streams = match codec {
        Codec::Packed => StreamReaders::split(Bytes::from(payload))?,
        Codec::Quick => StreamReaders::split(inflate(&payload)?)?,
        Codec::Tight => {
            let mut streams = StreamReaders::split(inflate(&payload)?)?;
            streams.raw = StreamReader::new(Bytes::from(uuid_text::put_back(
                streams.raw.rest(),
                streams.uuids.rest(),
                UNPACKED_BYTES_MAX,
            )?));
            streams
        }
    };
    let count = streams.counts.varint()?;
    Ok(UnpackedEvents { streams, next: first, turn, at: 0, left: count })
}

/// The events of a payload. After an error the iterator ends.
pub(crate) struct UnpackedEvents {
    streams: StreamReaders,
    next: Sequence,
    turn: TurnNumber,
    at: i64,
    left: u64,
}

impl Iterator for UnpackedEvents {
    type Item = Result<Event, MalformedBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let event = self.event();
        if event.is_err() {
            self.left = 0;
        }
        Some(event)
    }
}

impl UnpackedEvents {
    fn event(&mut self) -> Result<Event, MalformedBatch> {
        let sequence = self.next;
        self.next = sequence.next();
        self.at = self.at.wrapping_add(unzigzag(self.streams.times.varint()?));
        let raw = match self.streams.raw_lengths.varint()? {
            0 => None,
            length => Some(self.streams.raw.bytes(length - 1)?),
        };
        let body = body::read(&mut self.streams, raw.as_deref())?;
        Ok(Event { sequence, at: Timestamp(self.at), turn: self.turn, body, raw })
    }
}

fn streams_of(events: &[Event], search: TextSearch) -> Streams {
    let raw_bytes = events.iter().filter_map(|event| event.raw.as_ref()).map(Bytes::len).sum();
    let mut streams = Streams::with_capacity(events.len(), raw_bytes);
    put_varint(&mut streams.counts, events.len() as u64);
    let mut before = 0;
    for event in events {
        // The difference wraps, and adding it again gives the same time.
        put_varint(&mut streams.times, zigzag(event.at.0.wrapping_sub(before)));
        before = event.at.0;
        match &event.raw {
            None => put_varint(&mut streams.raw_lengths, 0),
            Some(raw) => {
                put_varint(&mut streams.raw_lengths, raw.len() as u64 + 1);
                streams.raw.extend_from_slice(raw);
            }
        }
        body::write(&mut streams, &event.body, event.raw.as_deref(), search);
    }
    streams
}

fn inflate(payload: &[u8]) -> Result<Bytes, MalformedBatch> {
    let mut reader = StreamReader::new(Bytes::copy_from_slice(payload));
    let length = usize::try_from(reader.varint()?).map_err(|_| MalformedBatch)?;
    if UNPACKED_BYTES_MAX < length {
        return Err(MalformedBatch);
    }
    // The frame states it too: a corrupt length must not allocate memory that is never filled.
    if !matches!(zstd::zstd_safe::get_frame_content_size(reader.rest()), Ok(Some(said)) if said == length as u64)
    {
        return Err(MalformedBatch);
    }
    let joined = zstd::bulk::decompress(reader.rest(), length).map_err(|_| MalformedBatch)?;
    if joined.len() == length { Ok(Bytes::from(joined)) } else { Err(MalformedBatch) }
}
