//! The current state of one message, for clients that were disconnected while it was streamed.

use tokenrail_domain::{AgentId, Assembler, EventBody, MessageOrdinal, MessageOutcome, Sequence, TurnNumber};

use crate::error::Refusal;
use crate::service::AgentService;

/// The current state of one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageStatus {
    /// How the message ended. `None` while it is still streamed.
    pub outcome: Option<MessageOutcome>,
    /// The text so far. An abandoned message has failed, and has no text.
    pub text: String,
    /// The event up to which this is valid. A client that follows from here receives the rest.
    pub sequence: Sequence,
}

impl AgentService {
    /// The current state of a message. `None` if the turn has no such message.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::Store`].
    pub async fn message_status(
        &self,
        id: AgentId,
        turn: TurnNumber,
        message: MessageOrdinal,
    ) -> Result<Option<MessageStatus>, Refusal> {
        let Some(Some(first)) = self.turn(id, turn).await?.map(|turn| turn.first_sequence) else {
            return Ok(None);
        };
        let (mut since, mut open, mut sequence) = (first.before(), Assembler::default(), Sequence::START);
        loop {
            // These pages do not contain the deltas of complete messages, so a turn has only a few pages.
            let page = self.messages(id, since, None).await?;
            for event in page.events.iter().filter(|event| event.turn == turn) {
                if let Some((outcome, text)) = end_of(message, &event.body) {
                    let (outcome, sequence) = (Some(outcome), event.sequence);
                    return Ok(Some(MessageStatus { outcome, text, sequence }));
                }
                if event.body.delta_of() == Some(message) {
                    open.record(event.sequence, &event.body);
                    sequence = event.sequence;
                }
            }
            let beyond = page.events.last().is_some_and(|event| turn < event.turn);
            if beyond || page.head <= page.up_to || page.up_to <= since {
                break;
            }
            since = page.up_to;
        }
        // The text so far is the text that the message would have if it ended now.
        let open = open.complete(message, MessageOutcome::Interrupted);
        Ok(open.map(|open| MessageStatus { outcome: None, text: open.text(), sequence }))
    }
}

/// The outcome and text of the message, if `body` is its end.
fn end_of(message: MessageOrdinal, body: &EventBody) -> Option<(MessageOutcome, String)> {
    match body {
        EventBody::Message(complete) if complete.message == message => {
            Some((complete.outcome, complete.text()))
        }
        EventBody::Abandoned { message: gone } if *gone == message => {
            Some((MessageOutcome::Failed, String::new()))
        }
        _ => None,
    }
}
