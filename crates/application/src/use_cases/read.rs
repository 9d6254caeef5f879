//! Reads agents and their journals, page by page.

use tokenrail_domain::{Agent, AgentId, Event, ListedAgent, Sequence};
use tokenrail_ports::{AgentFilter, ListPage, MessagePage, PageLimit};

use super::follow::not_ahead;
use crate::error::Refusal;
use crate::service::AgentService;

impl AgentService {
    /// The agent, deleted or not.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::Store`].
    pub async fn get(&self, id: AgentId) -> Result<Agent, Refusal> {
        let agent = self.core.outside.agents.get(id).await?;
        agent.ok_or_else(|| self.core.missing(Refusal::NotFound(id)))
    }

    /// One page of agents as lists show them, newest first unless the filter says otherwise: at most
    /// `limits.list_agents` and about `limits.list_bytes`.
    ///
    /// # Errors
    /// [`Refusal::Store`].
    pub async fn list(&self, mut filter: AgentFilter) -> Result<ListPage<ListedAgent>, Refusal> {
        filter.limit = filter.limit.min(self.core.limits.lists.list_agents);
        Ok(self.core.outside.agents.list(filter, self.core.limits.lists.bounds()).await?)
    }

    /// One page of what a person sees of an agent, after `since`.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::CursorAhead`], [`Refusal::Store`].
    pub async fn messages(
        &self,
        id: AgentId,
        since: Sequence,
        events: Option<usize>,
    ) -> Result<MessagePage, Refusal> {
        self.check_cursor(id, since).await?;
        Ok(self.core.outside.journal.messages(id, since, self.page(events)).await?)
    }

    /// Like [`AgentService::messages`], but for the agent's newest `last` events only. Also returns the cursor after
    /// which the page begins.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::CursorAhead`], [`Refusal::Store`].
    pub async fn newest_messages(
        &self,
        id: AgentId,
        last: u64,
        since: Sequence,
        events: Option<usize>,
    ) -> Result<(Sequence, MessagePage), Refusal> {
        let head = self.check_cursor(id, since).await?;
        let since = since.max(Sequence(head.0.saturating_sub(last)));
        let page = self.core.outside.journal.messages(id, since, self.page(events)).await?;
        Ok((since, page))
    }

    /// One page of all events of an agent, after `since`, and the number of its newest event.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::CursorAhead`], [`Refusal::Store`].
    pub async fn events(
        &self,
        id: AgentId,
        since: Sequence,
        events: Option<usize>,
    ) -> Result<(Vec<Event>, Sequence), Refusal> {
        let head = self.check_cursor(id, since).await?;
        let events = self.core.outside.journal.read(id, since, self.page(events)).await?;
        let Some(last) = events.last().map(|event| event.sequence) else { return Ok((events, head)) };
        self.core.tails.shown_lately.note(id, last);
        Ok((events, head.max(last)))
    }

    async fn check_cursor(&self, id: AgentId, since: Sequence) -> Result<Sequence, Refusal> {
        let head = self.get(id).await?.head;
        not_ahead(since, head).map_err(|ahead| self.core.missing(ahead))?;
        Ok(head)
    }

    fn page(&self, events: Option<usize>) -> PageLimit {
        let page = self.core.limits.reading.page();
        PageLimit { events: events.unwrap_or(page.events).clamp(1, page.events), ..page }
    }
}
