//! Both vocabularies, with every kind of turn.

use tokenrail_domain::{EventBody, Sequence};

use super::{Guest, RunStreamFold, Voices};
use crate::blocks::BlockWriter;
use crate::fold::Fold as _;
use crate::tests::stories::{CASES, Story, story};
use crate::vocabularies::kelpie;

const GUEST: Guest = Guest { name: "kelpie", blocks: kelpie::blocks };

fn voices(name: &str) -> Voices {
    Voices::from_name(name, GUEST).unwrap()
}

fn stream(story: &Story, format: &str, tokens: bool, after: u64) -> String {
    let turn = story.events[0].turn;
    let mut fold = RunStreamFold::new(story.agent, turn, voices(format), tokens, Sequence(after));
    let mut out = BlockWriter::default();
    for event in &story.events {
        fold.event(event, &mut out);
    }
    String::from_utf8(out.take().to_vec()).unwrap()
}

/// The blocks of a stream and their numbers.
fn blocks(text: &str) -> Vec<(Option<u64>, String)> {
    let blocks = text.split_inclusive("\n\n").map(|block| {
        let id = block.lines().find_map(|line| line.strip_prefix("id: ")).map(|id| id.parse().unwrap());
        let data = block.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
        let frame: serde_json::Value = serde_json::from_str(data).unwrap_or_default();
        (frame["seq_id"].as_u64().or(id), block.to_owned())
    });
    blocks.collect()
}

fn is_named(block: &str) -> bool {
    block.contains("event: ")
}

#[test]
fn every_kind_of_turn_has_its_frames() {
    for case in CASES {
        let story = story(case);
        let written = [
            ("letta, pieces", stream(&story, "letta", true, 0)),
            ("letta, whole items", stream(&story, "letta", false, 0)),
            ("kelpie", stream(&story, "kelpie", true, 0)),
        ];
        let written = written.map(|(name, text)| format!("=== {name}\n\n{text}")).concat();
        insta::assert_snapshot!(format!("{case}"), written);
    }
}

#[test]
fn behind_every_number_comes_exactly_the_rest() {
    for case in CASES {
        let story = story(case);
        for (format, tokens) in [("letta", true), ("letta", false), ("kelpie", true), ("both", true)] {
            let whole = blocks(&stream(&story, format, tokens, 0));
            let mut last = 0;
            for (at, (number, _)) in whole.iter().enumerate() {
                let Some(number) = *number else { continue };
                let next = whole.get(at + 1).and_then(|next| next.0);
                if format != "both" {
                    assert!(last < number, "{case}: numbers rise");
                }
                last = number;
                if next == Some(number) {
                    // With both vocabularies, the second one's frame for the same event follows.
                    continue;
                }
                assert_eq!(
                    blocks(&stream(&story, format, tokens, number)),
                    whole[at + 1..],
                    "{case} after {number}"
                );
            }
            let end = story.events.last().unwrap().sequence.0;
            assert_eq!(stream(&story, format, tokens, end), "data: [DONE]\n\n");
        }
    }
}

#[test]
fn one_stream_holds_both_vocabularies_frame_by_frame() {
    for case in CASES {
        let story = story(case);
        let both = blocks(&stream(&story, "both", true, 0));
        let only = |format| -> Vec<String> {
            blocks(&stream(&story, format, true, 0)).into_iter().map(|(_, block)| block).collect()
        };
        let of = |named: bool| -> Vec<String> {
            let blocks = both.iter().map(|(_, block)| block).filter(|block| is_named(block) == named);
            blocks.cloned().collect()
        };
        let error = |block: &String| !block.starts_with("event: error");
        let unnamed: Vec<_> = only("letta").into_iter().filter(error).collect();
        assert_eq!(of(false), unnamed, "{case}");
        let kelpie: Vec<_> =
            only("kelpie").into_iter().filter(|block| is_named(block)).filter(error).collect();
        assert_eq!(of(true).into_iter().filter(error).collect::<Vec<_>>(), kelpie, "{case}");
        let errors = both.iter().filter(|(_, block)| !error(block)).count();
        assert_eq!(
            errors,
            usize::from(matches!(case, "error" | "interrupted")),
            "{case}: one error says it to both"
        );
    }
}

#[test]
fn the_text_is_the_same_in_every_form() {
    for case in CASES.into_iter().filter(|case| *case != "retry") {
        let story = story(case);
        let said = |text: &str, kind: &str| -> String {
            let frames = text.lines().filter_map(|line| line.strip_prefix("data: "));
            let frames = frames.filter_map(|data| serde_json::from_str::<serde_json::Value>(data).ok());
            let said = frames.filter(|frame| frame[kind] == "assistant_message");
            said.map(|frame| frame["content"].as_str().unwrap().to_owned()).collect()
        };
        let expected: String = story
            .events
            .iter()
            .filter_map(|event| match &event.body {
                EventBody::Message(message) if message.parent_call.is_none() => Some(message.text()),
                _ => None,
            })
            .collect();
        assert_eq!(said(&stream(&story, "letta", true, 0), "message_type"), expected, "{case}");
        assert_eq!(said(&stream(&story, "letta", false, 0), "message_type"), expected, "{case}");
        assert_eq!(said(&stream(&story, "kelpie", true, 0), "type"), expected, "{case}");
    }
}
