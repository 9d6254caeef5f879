//! What happens to agents as a whole, for every client: low in rate, and no history.

use tokenrail_domain::{Agent, AgentId, AgentStatus, Timestamp};
use tokio::sync::broadcast;

/// How many news a slow client may be behind before it is told to load the list of agents again.
const NEWS_KEPT: usize = 1024;

/// Something that happened to an agent as a whole.
#[derive(Debug, Clone)]
pub enum News {
    Created { agent: Box<Agent>, at: Timestamp },
    Updated { agent: AgentId, status: AgentStatus, at: Timestamp },
    Deleted { agent: AgentId, at: Timestamp },
}

/// Where news are told.
#[derive(Debug)]
pub(crate) struct NewsDesk(broadcast::Sender<News>);

impl NewsDesk {
    pub(crate) fn new() -> Self {
        Self(broadcast::Sender::new(NEWS_KEPT))
    }

    pub(crate) fn tell(&self, news: News) {
        // Nobody listening is no error.
        let _ = self.0.send(news);
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<News> {
        self.0.subscribe()
    }
}
