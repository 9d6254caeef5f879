//! Reads a range of an agent's events, a page at a time.

use tokenrail_application::{AgentService, Refusal};
use tokenrail_domain::{AgentId, Event, Sequence};

/// The next events after `after`, up to `last`.
pub(crate) async fn page(
    service: &AgentService,
    id: AgentId,
    after: Sequence,
    last: Sequence,
) -> Result<Vec<Event>, Refusal> {
    if last <= after {
        return Ok(Vec::new());
    }
    let (mut events, _) = service.events(id, after, None).await?;
    events.retain(|event| event.sequence <= last);
    Ok(events)
}
