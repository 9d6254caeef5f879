//! Reads what is there, without waiting.

use tokenrail_domain::{AgentId, Event, EventBody, MessageOrdinal, Sequence};

use crate::api::Api;
use crate::error::Problem;
use crate::events;
use crate::vocabularies::mcp::dto::{
    self, AgentState, CallToolResult, Params, PartResult, PartWish, ReadResult, ReadWish,
};
use crate::vocabularies::mcp::entries::EntryPage;

/// How many events after the cursor one call reads at most. Those of long inputs and reasoning take no place on a page.
const READ_EVENTS: usize = 20_000;

/// The tool `read_agent`.
pub(super) async fn read(api: &Api, params: &Params) -> Result<CallToolResult, Problem> {
    let wish = dto::read(params)?;
    let agent = api.service().get(wish.agent).await?;
    let page = page(api, wish, agent.head).await?;
    let (up_to, more) = (page.up_to(), page.up_to() < agent.head);
    Ok(CallToolResult::of(&ReadResult {
        agent: AgentState::from(agent),
        entries: page.into_entries(),
        next_since: up_to.0,
        more,
    }))
}

/// The tool `read_entry`.
pub(super) async fn read_part(api: &Api, params: &Params) -> Result<CallToolResult, Problem> {
    let PartWish { agent, seq, offset, bytes } = dto::part(params)?;
    let head = api.service().get(agent).await?.head;
    let since = seq.before().min(head);
    let (events, _) = api.service().events(agent, since, Some(1)).await?;
    let mut page = EntryPage::new(since, 0);
    let mut whole = None;
    if let Some(event) = events.first().filter(|event| event.sequence == seq) {
        if let Some((message, first)) = page.begun_before(event) {
            hear(api, agent, (message, first, since), &mut page).await?;
        }
        hear_turn(api, agent, (event, since), &mut page).await?;
        whole = page.whole_text(event);
    }
    let whole = whole.ok_or_else(|| Problem::field("seq", "must be the seq of an entry that has a text"))?;
    let part = PartResult::new(agent, seq, &whole, (offset, bytes));
    let part = part.ok_or_else(|| Problem::field("offset", "must be next_offset of an earlier result"))?;
    Ok(CallToolResult::of(&part))
}

/// The entries up to `head`.
pub(super) async fn page(api: &Api, wish: ReadWish, head: Sequence) -> Result<EntryPage, Problem> {
    let ReadWish { agent, since, bytes } = wish;
    refuse_ahead(api, agent, since, head).await?;
    let (mut page, mut cursor, mut count) = (EntryPage::new(since, bytes), since, 0);
    // Later turns begin after the cursor.
    let mut is_first_turn = true;
    while !page.is_full() && count < READ_EVENTS {
        let events = events::page(api.service(), agent, cursor, head).await?;
        let Some(newest) = events.last() else { break };
        (cursor, count) = (newest.sequence, count + events.len());
        for event in &events {
            if let Some((message, first)) = page.begun_before(event).filter(|_| !page.is_full()) {
                hear(api, agent, (message, first, since), &mut page).await?;
            }
            if is_first_turn {
                hear_turn(api, agent, (event, since), &mut page).await?;
                is_first_turn = !matches!(event.body, EventBody::TurnResult(_));
            }
            page.event(event);
        }
    }
    Ok(page)
}

/// Lets the page hear what a message said from its first event to the cursor.
async fn hear(
    api: &Api,
    agent: AgentId,
    (message, first, since): (MessageOrdinal, Sequence, Sequence),
    page: &mut EntryPage,
) -> Result<(), Problem> {
    let mut cursor = first.before();
    loop {
        let events = events::page(api.service(), agent, cursor, since).await?;
        let Some(newest) = events.last() else { return Ok(()) };
        cursor = newest.sequence;
        for event in &events {
            page.hear(event, message);
        }
    }
}

/// Lets the page hear what the turn that this event ends has said up to the cursor, if that matters.
async fn hear_turn(
    api: &Api,
    agent: AgentId,
    (end, since): (&Event, Sequence),
    page: &mut EntryPage,
) -> Result<(), Problem> {
    if page.is_full() || !page.ends_with_text(end) {
        return Ok(());
    }
    let mut cursor = api.service().turn_begin(agent, since).await?;
    // All of it, because the agent may have abandoned what it said first.
    while !page.has_complete_text() {
        let events = events::page(api.service(), agent, cursor, since).await?;
        let Some(newest) = events.last() else { return Ok(()) };
        cursor = newest.sequence;
        for event in events.iter().filter(|event| event.turn == end.turn) {
            page.hear_turn(event);
        }
    }
    Ok(())
}

/// A cursor that is ahead of the head is refused, like everywhere.
pub(super) async fn refuse_ahead(
    api: &Api,
    agent: AgentId,
    since: Sequence,
    head: Sequence,
) -> Result<(), Problem> {
    if head < since {
        api.service().events(agent, since, Some(1)).await?;
    }
    Ok(())
}
