//! The messages of earlier turns, for agents that know earlier turns only from what they are sent.

use std::collections::VecDeque;

use tokenrail_domain::{Event, EventBody, Sequence, TurnNumber};
use tokenrail_ports::PastTurn;

use super::AgentTask;
use crate::core::SaveError;

/// The newest turns that fit, while a journal is read from its beginning.
struct PastTurns {
    /// Oldest first.
    turns: VecDeque<(TurnNumber, PastTurn)>,
    bytes: usize,
    bytes_max: usize,
}

impl AgentTask {
    /// The turns before `before`, oldest first, with the text that a person sees: as many of the newest ones as fit
    /// into `limits.model_history_bytes`.
    pub(super) async fn past_turns(&self, before: TurnNumber) -> Result<Vec<PastTurn>, SaveError> {
        let (core, limit) = (&self.core, self.core.limits.reading.page());
        let mut past = PastTurns::new(core.limits.reading.model_history_bytes);
        let mut after = Sequence(0);
        loop {
            let page = self.patiently(|| core.outside.journal.messages(self.agent, after, limit)).await?;
            for event in page.events.iter().filter(|event| event.turn < before) {
                past.take(event);
            }
            if page.head <= page.up_to || page.up_to <= after {
                return Ok(past.whole_turns());
            }
            after = page.up_to;
        }
    }
}

impl PastTurns {
    fn new(bytes_max: usize) -> Self {
        Self { turns: VecDeque::new(), bytes: 0, bytes_max }
    }

    fn take(&mut self, event: &Event) {
        let of_turn = |turn: &mut PastTurn| match &event.body {
            EventBody::UserMessage { content, images: _ } => turn.prompt.push_str(content),
            EventBody::Message(message) if message.parent_call.is_none() => {
                let text = message.text();
                if !(text.is_empty() || turn.answer.is_empty()) {
                    turn.answer.push_str("\n\n");
                }
                turn.answer.push_str(&text);
            }
            _ => {}
        };
        if self.turns.back().is_none_or(|(number, _)| *number != event.turn) {
            self.turns.push_back((event.turn, PastTurn::default()));
        }
        let Some((_, turn)) = self.turns.back_mut() else { return };
        let before = turn.text_bytes();
        of_turn(turn);
        self.bytes += turn.text_bytes() - before;
        // Keeps the newest turn even if it is too long by itself: it may not be complete yet.
        while self.bytes_max < self.bytes && 1 < self.turns.len() {
            let oldest = self.turns.pop_front();
            self.bytes -= oldest.map_or(0, |(_, turn)| turn.text_bytes());
        }
    }

    fn whole_turns(self) -> Vec<PastTurn> {
        if self.bytes_max < self.bytes {
            return Vec::new();
        }
        let turns = self.turns.into_iter().map(|(_, turn)| turn);
        turns.filter(|turn| !turn.prompt.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use tokenrail_domain::{CompleteMessage, ContentBlock, MessageOrdinal, MessageOutcome, Timestamp};

    use super::*;

    fn event(turn: u32, body: EventBody) -> Event {
        Event { sequence: Sequence(1), at: Timestamp::default(), turn: TurnNumber(turn), body, raw: None }
    }

    fn asked(turn: u32, content: &str) -> Event {
        event(turn, EventBody::UserMessage { content: content.to_owned(), images: Vec::new() })
    }

    fn said(turn: u32, blocks: Vec<ContentBlock>, outcome: MessageOutcome) -> Event {
        let message = MessageOrdinal(0);
        let complete = CompleteMessage { message, blocks, first_sequence: None, outcome, parent_call: None };
        event(turn, EventBody::Message(Box::new(complete)))
    }

    fn text(turn: u32, text: &str) -> Event {
        said(turn, vec![ContentBlock::Text(text.to_owned())], MessageOutcome::Complete)
    }

    fn history(events: &[Event], bytes_max: usize) -> Vec<(String, String)> {
        let mut past = PastTurns::new(bytes_max);
        for event in events {
            past.take(event);
        }
        past.whole_turns().into_iter().map(|turn| (turn.prompt, turn.answer)).collect()
    }

    fn pair(prompt: &str, answer: &str) -> (String, String) {
        (prompt.to_owned(), answer.to_owned())
    }

    #[test]
    fn it_is_what_was_said_and_not_what_was_thought() {
        let thought = ContentBlock::Reasoning("Hm".to_owned());
        let half = vec![thought, ContentBlock::Text("Half of".to_owned())];
        let events =
            [asked(1, "a"), text(1, "b"), text(1, "c"), asked(2, "d"), said(2, half, MessageOutcome::Failed)];
        assert_eq!(history(&events, 100), [pair("a", "b\n\nc"), pair("d", "Half of")]);
    }

    #[test]
    fn the_oldest_turns_are_left_out_and_never_the_half_of_one() {
        let events = [asked(1, "aaa"), text(1, "bbb"), asked(2, "ccc"), text(2, "ddd"), asked(3, "e")];
        let (first, second) = (pair("aaa", "bbb"), pair("ccc", "ddd"));
        let third = pair("e", "");
        assert_eq!(history(&events, 13), [first, second.clone(), third.clone()]);
        assert_eq!(history(&events, 12), [second.clone(), third.clone()]);
        assert_eq!(history(&events, 7), [second, third.clone()]);
        assert_eq!(history(&events, 6), [third]);
        assert_eq!(history(&events[..4], 5), []);
    }
}
