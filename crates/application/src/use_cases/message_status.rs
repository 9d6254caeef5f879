//! One message as it stands: what a client asks that was away while it was said.

use tokenrail_domain::{AgentId, Assembler, EventBody, MessageOrdinal, MessageOutcome, Sequence, TurnNumber};

use crate::error::Refusal;
use crate::service::AgentService;

/// One message as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageStatus {
    /// How it ended; none while it is being said.
    pub outcome: Option<MessageOutcome>,
    /// Its text so far. An abandoned message has failed, and has none.
    pub text: String,
    /// The event up to which this holds: whoever follows from here on gets the rest.
    pub sequence: Sequence,
}

impl AgentService {
    /// The message as it stands; none where the agent has not said such a message.
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
            // Deltas of messages that are complete are not in these pages, so a turn is a few of them.
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
        // What it would be if it ended now is what it has said.
        let open = open.complete(message, MessageOutcome::Interrupted);
        Ok(open.map(|open| MessageStatus { outcome: None, text: open.text(), sequence }))
    }
}

/// How the message ends, and with what text, where this is its end.
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
