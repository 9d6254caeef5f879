//! The writers: each saves the appends of its agents on a connection of its own.
//!
//! What waits when a statement returns goes with the next one: a single token is saved at once, and the more there is
//! to save, the larger the groups. A caller gets `Ok` only when its append is known to be saved.

mod group;
mod queue;

use std::sync::{Arc, Mutex, PoisonError};

use tokenrail_domain::AgentId;
use tokenrail_ports::StoreError;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use self::group::{GroupWriter, WaitingAppend};
use self::queue::Queue;
use crate::orders::ask;
use crate::postgres::database::link::Connector;
use crate::postgres::failover::Healer;
use crate::postgres::known_agents::KnownAgents;
use crate::postgres::statements::append::PreparedAppend;

/// A message to a writer.
enum WriterOrder {
    Append(Box<WaitingAppend>),
    Stop,
}

/// The writers of a store.
pub(crate) struct Writers {
    queues: Vec<mpsc::Sender<WriterOrder>>,
    tasks: Mutex<JoinSet<()>>,
}

impl Writers {
    pub(crate) fn start(connector: &Arc<Connector>, healer: &Arc<Healer>, known: &Arc<KnownAgents>) -> Self {
        let (mut queues, mut tasks) = (Vec::new(), JoinSet::new());
        for _ in 0..connector.limits.writers.max(1) {
            let (sender, receiver) = mpsc::channel(connector.limits.queued_appends.max(1));
            let writer = GroupWriter::new(&connector.limits, Arc::clone(healer), Arc::clone(known));
            tasks.spawn_on(run(writer, receiver), &connector.runtime);
            queues.push(sender);
        }
        Self { queues, tasks: Mutex::new(tasks) }
    }

    /// Saves an append. It is saved even if the caller stops waiting.
    ///
    /// The next steps are [`run`], in the task of the agent's writer, and [`GroupWriter::save`], which answers.
    pub(crate) async fn append(&self, prepared: PreparedAppend) -> Result<(), StoreError> {
        let (reply, answer) = oneshot::channel();
        let queue = self.queue_of(prepared.agent());
        ask(queue, WriterOrder::Append(Box::new(WaitingAppend { prepared, reply })), answer).await
    }

    /// Saves everything that is queued. Later appends fail.
    pub(crate) async fn close(&self) {
        for queue in &self.queues {
            // This fails if the writer has ended.
            let _ended = queue.send(WriterOrder::Stop).await;
        }
        let mut tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        while let Some(ended) = tasks.join_next().await {
            if let Err(error) = ended {
                tracing::error!(error = &error as &dyn std::error::Error, "a writer of the database failed");
            }
        }
    }

    /// An agent always has the same writer. The end of an id is random.
    fn queue_of(&self, agent: AgentId) -> &mpsc::Sender<WriterOrder> {
        let at = agent.as_uuid().as_u128() % self.queues.len() as u128;
        &self.queues[at as usize]
    }
}

/// Runs until it receives the order to stop, or no sender is left.
async fn run(mut writer: GroupWriter, mut orders: mpsc::Receiver<WriterOrder>) {
    let mut queue = Queue::new(writer.limits());
    while !queue.stop || !queue.is_empty() {
        if queue.is_empty() {
            queue.add(orders.recv().await.unwrap_or(WriterOrder::Stop));
        }
        while !queue.is_full()
            && let Ok(order) = orders.try_recv()
        {
            queue.add(order);
        }
        writer.save(queue.next()).await;
    }
}
