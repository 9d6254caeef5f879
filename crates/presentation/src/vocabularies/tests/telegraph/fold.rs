use serde::Serialize;
use tokenrail_application::RenderingKey;
use tokenrail_domain::{Event, EventBody};

use super::dto::{Stop, Telegram};
use crate::blocks::BlockWriter;
use crate::fold::{Fold, Frames, Vocabulary};
use crate::json::JsonList;

pub(crate) enum Telegraph {}

impl Vocabulary for Telegraph {
    type Frame<'f> = TelegraphFrame<'f>;
}

pub(crate) struct TelegraphFrame<'f> {
    sequence: u64,
    name: &'static str,
    value: Value<'f>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Value<'f> {
    Telegram(Telegram<'f>),
    Stop(Stop),
}

/// One turn, from its first event on.
#[derive(Default)]
pub(in crate::vocabularies) struct TelegraphFold {
    letters: usize,
}

impl Fold for TelegraphFold {
    type Vocabulary = Telegraph;

    fn shared(&self, form: u8) -> Option<RenderingKey> {
        Some(RenderingKey::of::<Self>([0, form]))
    }

    fn event<T: Frames<Telegraph>>(&mut self, event: &Event, out: &mut T) {
        let sequence = event.sequence.0;
        match &event.body {
            EventBody::Message(complete) => {
                let text = complete.text().trim().to_uppercase();
                self.letters += text.chars().count();
                let value = Value::Telegram(Telegram { text: &text });
                out.frame(TelegraphFrame { sequence, name: "telegram", value });
            }
            EventBody::TurnResult(_) => {
                let value = Value::Stop(Stop { letters: std::mem::take(&mut self.letters) });
                out.frame(TelegraphFrame { sequence, name: "stop", value });
            }
            _ => {}
        }
    }
}

impl Frames<Telegraph> for BlockWriter {
    fn frame(&mut self, frame: TelegraphFrame<'_>) {
        self.named(frame.name, Some(frame.sequence), &frame.value);
    }
}

impl Frames<Telegraph> for JsonList {
    fn frame(&mut self, frame: TelegraphFrame<'_>) {
        self.item(&frame.value);
    }
}
