//! The open permission requests of all agents.

use std::sync::Arc;

use tokenrail_domain::AgentId;
use tokenrail_ports::ListPage;

use crate::open_requests::{Needs, OpenRequest, RequestPlace};
use crate::service::AgentService;

impl AgentService {
    /// What an agent needs from a user. After a restart of the server, an agent that waits needs nothing until its run
    /// is adopted and its output is read again. Then a lifecycle event says what it needs.
    pub fn needs(&self, agent: AgentId) -> Needs {
        self.core.open_requests.needs(agent)
    }

    /// One page of the open permission requests of all agents, from the oldest to the newest, after a place: at most
    /// `limits.list_agents` and about `limits.list_bytes`.
    pub fn list_open_requests(
        &self,
        after: Option<&RequestPlace>,
        limit: usize,
    ) -> ListPage<Arc<OpenRequest>> {
        let limits = &self.core.limits.lists;
        let mut items = self.core.open_requests.after(after);
        let all = items.len();
        items.truncate(limit.min(limits.list_agents));
        let mut bytes = 0;
        let fits = |request: &Arc<OpenRequest>| {
            let is_first = bytes == 0;
            bytes += request.bytes();
            is_first || bytes <= limits.list_bytes
        };
        items.truncate(items.iter().map(fits).take_while(|fits| *fits).count());
        ListPage { more: items.len() < all, items }
    }
}
