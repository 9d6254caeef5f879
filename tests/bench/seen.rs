//! What a follower has read, and how it is parsed from frames: those of Tokenrail, single and packed, and those of the
//! peers, which frame an event as Tokenrail does.
//!
//! Of most frames only the beginning is parsed, so that the reader costs as little as possible. A thorough reader also
//! parses packed frames and counts their texts.

use memchr::memmem;
use serde::Deserialize;

use crate::Failure;

const MESSAGE: &[u8] = br#"{"type":"agent:message","payload":{"agentId":""#;
const DELTAS: &[u8] = br#"{"type":"agent:deltas","payload":{"agentId":""#;
const COMPLETE: &[u8] = br#"{"type":"agent:complete""#;
const SUBSCRIBED: &[u8] = br#"{"type":"subscribed""#;
const ERROR: &[u8] = br#"{"type":"error""#;
/// The list of all agents may be incomplete. Nobody here looks at it.
const NEWS_LAGGED: &[u8] = br#""code":"news_lagged""#;
const DELTA: &[u8] = br#""eventType":"content_delta""#;
const SEQUENCE: &[u8] = br#"","sequence":"#;
const CONTENT: &[u8] = br#""content":""#;
const FROM: &[u8] = br#","from":"#;
const TO: &[u8] = br#","to":"#;
const UUID: usize = 36;

const BLOCK_ID: &[u8] = b"id: ";
const BLOCK_DATA: &[u8] = b"\ndata: ";
const PACKED_BLOCK: &[u8] = b"\nevent: deltas\n";
const RESULT_BLOCK: &[u8] = b"\nevent: result\n";

/// What a follower has read.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// The number of the newest event. All events before it came exactly once.
    pub(crate) last: u64,
    pub(crate) bytes: u64,
    /// The number of deltas, and the bytes of their frames including the frame headers. Single deltas are counted only
    /// by a reader that looks closer.
    pub(crate) deltas: u64,
    pub(crate) delta_bytes: u64,
    pub(crate) turn_ended: bool,
    pub(crate) subscribed: bool,
    /// When the first event and the newest bytes came.
    pub(crate) first_us: Option<u64>,
    pub(crate) newest_us: u64,
    /// For each delta whose text is a time: its age when it was read, in microseconds. Filled only if there is room.
    pub(crate) delays_us: Vec<u32>,
    /// Whether packed frames are parsed.
    pub(crate) thorough: bool,
}

/// The fields of a packed frame that a thorough reader parses.
#[derive(Deserialize)]
struct Packed<'a> {
    from: u64,
    to: u64,
    #[serde(borrow)]
    texts: Vec<std::borrow::Cow<'a, str>>,
}

#[derive(Deserialize)]
struct PackedFrame<'a> {
    #[serde(borrow)]
    payload: Packed<'a>,
}

impl Seen {
    /// Handles the payload of a text frame, or the beginning of it. The whole frame has `length` bytes.
    pub(crate) fn frame(&mut self, payload: &[u8], length: usize) -> Result<(), Failure> {
        if let Some(rest) = payload.strip_prefix(MESSAGE) {
            let rest = rest.get(UUID..).and_then(|rest| rest.strip_prefix(SEQUENCE));
            self.event(number(rest.ok_or("a message without its number")?))?;
            if self.looks_closer() && memmem::find(payload, DELTA).is_some() {
                self.delta(payload, length);
            }
        } else if payload.starts_with(DELTAS) {
            let (from, to) = range(payload)?;
            self.events(from, to, length)?;
            if self.thorough {
                self.take_apart(&serde_json::from_slice::<PackedFrame<'_>>(payload)?.payload)?;
            }
        } else if payload.starts_with(COMPLETE) {
            self.turn_ended = true;
        } else if payload.starts_with(SUBSCRIBED) {
            self.subscribed = true;
        } else if payload.starts_with(ERROR) && memmem::find(payload, NEWS_LAGGED).is_none() {
            return Err(String::from_utf8_lossy(payload).into());
        }
        Ok(())
    }

    /// Handles a block of an event stream.
    pub(crate) fn block(&mut self, block: &[u8]) -> Result<(), Failure> {
        let Some(id) = block.strip_prefix(BLOCK_ID) else { return Ok(()) };
        let head = &block[..block.len().min(80)];
        if memmem::find(head, PACKED_BLOCK).is_some() {
            let (from, to) = range(block)?;
            if number(id) != to {
                return Err(format!("a block with the id {} goes to {to}", number(id)).into());
            }
            self.events(from, to, block.len())?;
            if self.thorough {
                let data = memmem::find(block, BLOCK_DATA).ok_or("a block without data")? + BLOCK_DATA.len();
                self.take_apart(&serde_json::from_slice::<Packed<'_>>(&block[data..])?)?;
            }
            return Ok(());
        }
        self.event(number(id))?;
        self.turn_ended |= memmem::find(head, RESULT_BLOCK).is_some();
        if self.looks_closer() && memmem::find(block, DELTA).is_some() {
            self.delta(block, block.len());
        }
        Ok(())
    }

    /// Counts the next event.
    pub(crate) fn event(&mut self, sequence: u64) -> Result<(), Failure> {
        if sequence != self.last + 1 {
            return Err(format!("lost or doubled: {sequence} came after {}", self.last).into());
        }
        self.last = sequence;
        self.first_us.get_or_insert(self.newest_us);
        Ok(())
    }

    /// Counts the next deltas of a packed frame.
    fn events(&mut self, from: u64, to: u64, bytes: usize) -> Result<(), Failure> {
        if to < from {
            return Err(format!("a packed frame from {from} to {to}").into());
        }
        self.event(from)?;
        self.last = to;
        self.deltas += to - from + 1;
        self.delta_bytes += bytes as u64;
        Ok(())
    }

    fn take_apart(&mut self, packed: &Packed<'_>) -> Result<(), Failure> {
        let Packed { from, to, texts } = packed;
        if texts.len() as u64 != to - from + 1 {
            return Err(format!("lost or doubled: {} texts from {from} to {to}", texts.len()).into());
        }
        for text in texts {
            self.delay(number(text.as_bytes()));
        }
        Ok(())
    }

    /// Whether more than the number of an event is of interest.
    fn looks_closer(&self) -> bool {
        self.thorough || self.delays_us.capacity() != 0
    }

    fn delta(&mut self, head: &[u8], bytes: usize) {
        self.deltas += 1;
        self.delta_bytes += bytes as u64;
        if let Some(content) = memmem::find(head, CONTENT) {
            self.delay(number(&head[content + CONTENT.len()..]));
        }
    }

    /// Records a delta that was printed at this time.
    pub(crate) fn delay(&mut self, said_us: u64) {
        if self.delays_us.capacity() != 0 {
            self.delays_us.push(self.newest_us.saturating_sub(said_us) as u32);
        }
    }
}

/// The numbers of the first and the last event of a packed frame. They come before its texts.
fn range(frame: &[u8]) -> Result<(u64, u64), Failure> {
    let from = memmem::find(frame, FROM).ok_or("a packed frame without its first number")? + FROM.len();
    let rest = &frame[from..];
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let to = rest[digits..].strip_prefix(TO).ok_or("a packed frame without its last number")?;
    Ok((number(rest), number(to)))
}

/// The number at the beginning of the bytes.
pub(crate) fn number(bytes: &[u8]) -> u64 {
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGENT: &str = "01a208c7-073d-7893-8dcc-eda57bb6f126";

    fn single(sequence: u64, text: &str) -> String {
        format!(
            r#"{{"type":"agent:message","payload":{{"agentId":"{AGENT}","sequence":{sequence},"message":{{"content":"{text}","metadata":{{"eventType":"content_delta"}}}}}}}}"#
        )
    }

    fn payload(from: u64, to: u64, texts: &[&str]) -> String {
        let texts = serde_json::to_string(texts).unwrap();
        format!(
            r#"{{"agentId":"{AGENT}","messageId":"{AGENT}","part":0,"eventType":"content_delta","from":{from},"to":{to},"createdAt":"2026-11-21T22:10:01.014Z","texts":{texts}}}"#
        )
    }

    fn packed(from: u64, to: u64, texts: &[&str]) -> String {
        let payload = payload(from, to, texts);
        format!(r#"{{"type":"agent:deltas","payload":{payload},"timestamp":1795299001017}}"#)
    }

    fn read(frames: &[String]) -> Result<Seen, Failure> {
        let mut seen = Seen { newest_us: 100, thorough: true, ..Seen::default() };
        seen.delays_us.reserve(8);
        frames.iter().try_for_each(|frame| seen.frame(frame.as_bytes(), frame.len()))?;
        Ok(seen)
    }

    #[track_caller]
    fn check_refused(frames: &[String], reason: &str) {
        assert_eq!(read(frames).unwrap_err().to_string(), reason);
    }

    #[test]
    fn both_forms_are_read_and_counted() {
        let frames = [single(1, "60 "), packed(2, 4, &["70 ", "80 ", "90 "]), single(5, "95 ")];
        let seen = read(&frames).unwrap();
        assert_eq!((seen.last, seen.deltas), (5, 5));
        assert_eq!(seen.delta_bytes as usize, frames.iter().map(String::len).sum::<usize>());
        assert_eq!(seen.delays_us, [40, 30, 20, 10, 5]);
    }

    #[test]
    fn a_hole_and_a_double_are_refused_in_either_form() {
        check_refused(&[single(1, ""), single(3, "")], "lost or doubled: 3 came after 1");
        check_refused(&[single(1, ""), single(1, "")], "lost or doubled: 1 came after 1");
        check_refused(&[packed(1, 2, &["", ""]), packed(4, 4, &[""])], "lost or doubled: 4 came after 2");
        check_refused(&[packed(1, 2, &["", ""]), packed(2, 3, &["", ""])], "lost or doubled: 2 came after 2");
        check_refused(&[packed(1, 3, &["", "", ""]), single(3, "")], "lost or doubled: 3 came after 3");
    }

    #[test]
    fn a_packed_frame_says_as_much_as_its_numbers() {
        check_refused(&[packed(1, 3, &["", ""])], "lost or doubled: 2 texts from 1 to 3");
        check_refused(&[packed(1, 0, &[])], "a packed frame from 1 to 0");
    }

    #[test]
    fn the_head_of_a_packed_frame_is_enough() {
        let frame = packed(1, 500, &[]);
        let mut seen = Seen::default();
        seen.frame(&frame.as_bytes()[..220], 9000).unwrap();
        assert_eq!((seen.last, seen.deltas, seen.delta_bytes), (500, 500, 9000));
    }

    #[test]
    fn blocks_of_an_event_stream_are_read_in_either_form() {
        let data = r#"{"content":"40 ","metadata":{"eventType":"content_delta"}}"#;
        let mut seen = Seen { newest_us: 100, thorough: true, ..Seen::default() };
        seen.delays_us.reserve(8);
        let packed =
            |id: u64| format!("id: {id}\nevent: deltas\ndata: {}\n\n", payload(2, 3, &["50 ", "60 "]));
        assert!(seen.block(packed(3).as_bytes()).is_err(), "the first one is missing");
        for block in [
            "retry: 1000\nid: 0\n:\n\n".to_owned(),
            format!("id: 1\nevent: content_delta\ndata: {data}\n\n"),
            packed(3),
            "id: 4\nevent: result\ndata: {}\n\n".to_owned(),
        ] {
            seen.block(block.as_bytes()).unwrap();
        }
        assert_eq!((seen.last, seen.deltas, seen.turn_ended), (4, 3, true));
        assert_eq!(seen.delays_us, [60, 50, 40]);
        assert!(seen.block(packed(2).as_bytes()).is_err(), "the id is that of the last event");
    }

    #[test]
    fn what_ends_a_turn_is_no_event() {
        let ended = r#"{"type":"agent:complete","payload":{}}"#.to_owned();
        let seen = read(&[single(1, ""), ended]).unwrap();
        assert_eq!((seen.last, seen.turn_ended), (1, true));
        check_refused(&[r#"{"type":"error"}"#.to_owned()], r#"{"type":"error"}"#);
    }
}
