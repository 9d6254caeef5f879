//! The assembler keeps the text of every delta. It is compared with a model that keeps all of them.

use std::collections::BTreeMap;

use tokenrail_domain::{
    Assembler, ContentBlock, EventBody, JsonText, MessageOrdinal, MessageOutcome, Part, Sequence, ToolCall,
    TurnOutcome, TurnResult,
};

use super::said_messages::Spoken;
use super::source::Source;

#[derive(Default)]
struct Model {
    open: BTreeMap<MessageOrdinal, (Sequence, usize, Spoken)>,
}

pub(crate) fn run(data: &[u8]) {
    let mut source = Source::new(data);
    let (mut assembler, mut model) = (Assembler::default(), Model::default());
    let mut sequence = Sequence::START;
    while !source.is_empty() {
        sequence = sequence.next();
        let body = body(&mut source, &assembler);
        assembler.record(sequence, &body);
        model.record(sequence, &body);
        model.check(&assembler);
    }
}

fn body(source: &mut Source<'_>, assembler: &Assembler) -> EventBody {
    let kind = source.below(32);
    let (message, part) = (MessageOrdinal(source.below(3).into()), Part(source.below(4).into()));
    let length = usize::from(source.below(8));
    let text = String::from_utf8_lossy(source.take(length)).into_owned();
    let call = format!("c{}", text.len() % 2);
    match kind {
        0..12 => EventBody::TextDelta { message, part, text },
        12..20 => EventBody::ReasoningDelta { message, part, text },
        20..26 => EventBody::ToolInputDelta { message, part, call, tool: Some("T".into()), fragment: text },
        26 => EventBody::ToolCall(Box::new(ToolCall {
            call,
            tool: "T".into(),
            input: JsonText::new_unchecked("{}"),
            parent_call: None,
        })),
        27 => EventBody::Abandoned { message },
        28 => EventBody::UserMessage { content: text, images: Vec::new() },
        29 => {
            let rest = vec![(part, ContentBlock::Text(text))];
            match assembler.complete_with(message, MessageOutcome::Complete, rest) {
                Some(complete) => EventBody::Message(Box::new(complete)),
                None => EventBody::Abandoned { message },
            }
        }
        30 => match assembler.complete(message, MessageOutcome::Cancelled) {
            Some(complete) => EventBody::Message(Box::new(complete)),
            None => EventBody::Abandoned { message },
        },
        _ => EventBody::TurnResult(Box::new(result(text))),
    }
}

fn result(text: String) -> TurnResult {
    TurnResult {
        outcome: TurnOutcome::Completed,
        text,
        duration_ms: 0,
        num_turns: None,
        cost_usd: None,
        usage: None,
        message_count: 0,
        error: None,
        origin: None,
    }
}

impl Model {
    fn record(&mut self, sequence: Sequence, body: &EventBody) {
        if let Some(message) = body.delta_of() {
            let (_, bytes, spoken) =
                self.open.entry(message).or_insert_with(|| (sequence, 0, Spoken::default()));
            *bytes += spoken.hear(body);
        }
        match body {
            EventBody::Message(complete) => drop(self.open.remove(&complete.message)),
            EventBody::Abandoned { message } => drop(self.open.remove(message)),
            EventBody::TurnResult(_) => self.open.clear(),
            _ => {}
        }
    }

    fn check(&self, assembler: &Assembler) {
        assert!(assembler.open_messages().eq(self.open.keys().copied()));
        assert_eq!(assembler.first_open_sequence(), self.open.values().map(|(first, ..)| *first).min());
        assert_eq!(assembler.bytes(), self.open.values().map(|(_, bytes, _)| bytes).sum::<usize>());
        for (message, (first, _, spoken)) in &self.open {
            let complete = assembler.complete(*message, MessageOutcome::Complete).expect("it is open");
            assert_eq!(complete.first_sequence, Some(*first));
            spoken.check(&complete);
        }
    }
}
