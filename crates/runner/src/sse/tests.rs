use proptest::prelude::*;

use super::*;

const EVENT_BYTES: usize = 4096;

fn read<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<SseEvent>, SseOverflow> {
    let mut decoder = SseDecoder::new(EVENT_BYTES);
    let mut events = Vec::new();
    for chunk in chunks {
        decoder.feed(chunk, &mut events)?;
    }
    Ok(events)
}

fn check(stream: &str, expected: &[(&str, &str, Option<&str>)]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|(name, data, id)| SseEvent {
            name: (*name).to_owned(),
            data: data.as_bytes().to_vec(),
            id: id.map(str::to_owned),
        })
        .collect();
    assert_eq!(read([stream.as_bytes()]).unwrap(), expected, "{stream:?}");
}

#[test]
fn events_are_read_whatever_ends_their_lines() {
    let expected = [("message", "a", None), ("complete", "b", None)];
    for end in ["\n", "\r\n", "\r"] {
        let stream = "event: message|data: a||event:complete|data:b||".replace('|', end);
        check(&stream, &expected);
    }
}

#[test]
fn data_lines_are_joined_and_an_empty_one_counts() {
    check("data: a\ndata\ndata:  b\n\n", &[("", "a\n\n b", None)]);
    check("data:\n\n", &[("", "", None)]);
}

#[test]
fn what_has_no_data_is_no_event() {
    check("event: ping\n\n: keep-alive\n\nfoo: bar\n\ndata: a\n\n", &[("", "a", None)]);
}

#[test]
fn an_id_holds_until_the_next_one() {
    check(
        "id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\nid: 2\0\ndata: d\n\n",
        &[("", "a", Some("1")), ("", "b", Some("1")), ("", "c", Some("")), ("", "d", Some(""))],
    );
}

#[test]
fn a_byte_order_mark_is_skipped_at_the_beginning_only() {
    check("\u{feff}data: a\n\n\u{feff}data: b\n\n", &[("", "a", None)]);
}

#[test]
fn an_event_that_the_stream_breaks_off_in_is_not_given() {
    check("data: a\n\ndata: b\n", &[("", "a", None)]);
}

#[test]
fn the_stream_can_ask_for_a_pause() {
    let mut decoder = SseDecoder::new(EVENT_BYTES);
    decoder.feed(b"retry: 250\nretry: soon\nid: 7\n\n", &mut Vec::new()).unwrap();
    assert_eq!((decoder.retry_ms(), decoder.last_id()), (Some(250), Some("7")));
}

#[test]
fn an_endless_event_is_refused_before_it_fills_the_memory() {
    let line = [b"data: ".as_slice(), &[b'x'; 1000], b"\n"].concat();
    assert_eq!(read(std::iter::repeat_n(&line[..], 3)), Ok(Vec::new()));
    let refused = Err(SseOverflow { event_bytes: EVENT_BYTES });
    assert_eq!(read(std::iter::repeat_n(&line[..], 5)), refused, "many lines");
    assert_eq!(read(std::iter::repeat_n(&[b'x'; 1000][..], 5)), refused, "one line");
}

proptest! {
    #[test]
    fn events_do_not_depend_on_how_the_stream_is_cut_into_chunks(
        chunks in prop::collection::vec("(data: |event: |id: |: |[a\r\n\u{feff}é])", 0..60),
        size in 1_usize..9,
    ) {
        let stream = chunks.concat();
        let expected = read([stream.as_bytes()]);
        prop_assert_eq!(read(stream.as_bytes().chunks(size)), expected.clone());
        prop_assert_eq!(read(chunks.iter().map(String::as_bytes)), expected);
    }
}

#[test]
fn an_id_counts_only_when_its_event_has_ended() {
    let mut decoder = SseDecoder::new(EVENT_BYTES);
    let mut events = Vec::new();
    decoder.feed(b"id: 1\ndata: a\n\nid: 2\ndata: b\n", &mut events).unwrap();
    assert_eq!(decoder.last_id(), Some("1"), "whoever goes on after 2 would never see it");
    decoder.feed(b"\n", &mut events).unwrap();
    assert_eq!((decoder.last_id(), events.len()), (Some("2"), 2));
}

#[test]
fn the_time_before_the_next_try_is_digits_and_nothing_else() {
    let mut decoder = SseDecoder::new(EVENT_BYTES);
    decoder.feed(b"retry: 10\nretry: +5\nretry: -5\nretry:\nretry: 5 \n", &mut Vec::new()).unwrap();
    assert_eq!(decoder.retry_ms(), Some(10));
}
