//! Any frames in any chunks: the messages equal those of a simple model, and the buffers stay within the limit of a
//! message.

use actix_http::BoxedPayloadStream;
use actix_http::error::PayloadError;
use futures_util::{FutureExt as _, stream};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::*;
use crate::tests::harness::Harness;

const BYTES_MAX: usize = 300;
const CHUNK_BYTES: usize = 512;

/// A frame of a client. Its announced length is `missing` more than the payload.
#[derive(Debug, Clone)]
struct Sent {
    first: u8,
    payload: Vec<u8>,
    missing: u64,
}

impl Sent {
    fn length(&self) -> u64 {
        self.payload.len() as u64 + self.missing
    }

    /// Masked with zeros, which changes nothing.
    fn bytes(&self) -> Vec<u8> {
        let mut out = vec![self.first];
        match self.length() {
            short @ ..126 => out.push(0x80 | short as u8),
            middle @ ..65_536 => {
                out.push(0xfe);
                out.extend_from_slice(&(middle as u16).to_be_bytes());
            }
            long => {
                out.push(0xff);
                out.extend_from_slice(&long.to_be_bytes());
            }
        }
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.payload);
        out
    }
}

/// The whole messages of the frames, and why reading ends.
fn model(frames: &[Sent]) -> (Vec<Vec<u8>>, Broken) {
    let (mut whole, mut open) = (Vec::new(), None::<Vec<u8>>);
    for frame in frames {
        let (is_last, opcode) = (frame.first & 0x80 != 0, frame.first & 0x0f);
        if opcode == 9 {
            match (frame.length() <= 125, frame.missing == 0) {
                (false, _) => return (whole, Broken::Protocol),
                (true, false) => return (whole, Broken::TooSlow),
                (true, true) if !is_last => return (whole, Broken::Protocol),
                (true, true) => continue,
            }
        }
        let held = open.as_ref().map_or(0, Vec::len) as u64;
        if (BYTES_MAX as u64) < held.saturating_add(frame.length()) {
            return (whole, Broken::TooLarge);
        }
        if 0 < frame.missing {
            return (whole, Broken::TooSlow);
        }
        if (opcode == 0) != open.is_some() {
            return (whole, Broken::Protocol);
        }
        let mut message = open.take().unwrap_or_default();
        message.extend_from_slice(&frame.payload);
        if is_last { whole.push(message) } else { open = Some(message) }
    }
    // If no part of a message has come, there is no time limit for the next one.
    (whole, if open.is_none_or(|open| open.is_empty()) { Broken::Gone } else { Broken::TooSlow })
}

fn frames() -> impl Strategy<Value = Vec<Sent>> {
    let first = prop_oneof![4 => Just(0x82), 4 => Just(0x02), 8 => Just(0x00), 4 => Just(0x80), 4 => Just(0x89), 1 => Just(0x09)];
    let missing = prop_oneof![
        30 => Just(0),
        1 => 1_u64..400,
        1 => Just(1 << 40),
        1 => Just(u64::from(u32::MAX)),
    ];
    let sent = (first, prop::collection::vec(any::<u8>(), 0..90), missing);
    let sent = sent.prop_map(|(first, payload, missing)| Sent { first, payload, missing });
    prop::collection::vec(sent, 1..40)
}

/// Reads the frames. Returns the messages, why reading ended, and the largest buffer size.
fn read(api: Api, bytes: &[u8], chunk_bytes: usize) -> (Vec<Vec<u8>>, Broken, usize) {
    let chunks: Vec<_> = bytes.chunks(chunk_bytes).map(|chunk| Ok(Bytes::copy_from_slice(chunk))).collect();
    let payload = stream::iter(chunks).chain(stream::pending::<Result<Bytes, PayloadError>>());
    let payload: BoxedPayloadStream = Box::pin(payload);
    let payload = dev::Payload::Stream { payload };
    let mut messages = Messages::new(api, payload, BYTES_MAX);
    let (mut whole, mut most) = (Vec::new(), 0);
    loop {
        let next = messages.next().now_or_never();
        most = most.max(messages.waiting.capacity() + messages.message.capacity());
        match next {
            Some(Ok(Message::Binary(bytes))) => whole.push(bytes.to_vec()),
            Some(Ok(_)) => {}
            Some(Err(broken)) => return (whole, broken, most),
            // All bytes have been read.
            None if messages.due().is_some() => return (whole, Broken::TooSlow, most),
            None => return (whole, Broken::Gone, most),
        }
    }
}

#[test]
fn any_frames_are_read_as_they_stand_and_little_is_held() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let _inside = runtime.enter();
    let harness = Harness::new();
    let config = ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() };
    let seen = (frames(), 1..CHUNK_BYTES);
    let result = TestRunner::new(config).run(&seen, |(frames, chunk_bytes)| {
        // After an incomplete frame, nothing more can come.
        let end = frames.iter().position(|frame| 0 < frame.missing).map_or(frames.len(), |at| at + 1);
        let frames = &frames[..end];
        let bytes: Vec<u8> = frames.iter().flat_map(Sent::bytes).collect();
        let (whole, broken, most) = read(harness.api.clone(), &bytes, chunk_bytes);
        prop_assert_eq!((whole, broken), model(frames));
        // Both buffers grow by doubling.
        prop_assert!(most <= 2 * (2 * BYTES_MAX + CHUNK_BYTES), "{} bytes are held", most);
        Ok(())
    });
    result.unwrap();
}
