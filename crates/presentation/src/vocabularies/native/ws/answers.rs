//! The answers to permission requests that a connection has received, and their outcomes.

use std::future::Future;
use std::pin::Pin;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokenrail_application::PermissionAnswer;
use tokenrail_domain::AgentId;

use crate::api::Api;
use crate::error::Problem;
use crate::vocabularies::native::dto::permission::PermissionStateDto;

/// Answers on their way to agents. They make progress while the connection does other things.
#[derive(Default)]
pub(crate) struct AnswersInFlight {
    on_their_way: FuturesUnordered<Pin<Box<dyn Future<Output = Answered>>>>,
}

/// The outcome of an answer.
pub(crate) struct Answered {
    pub(crate) agent: AgentId,
    pub(crate) request_id: String,
    pub(crate) came: Result<PermissionStateDto, Problem>,
}

impl AnswersInFlight {
    pub(crate) fn len(&self) -> usize {
        self.on_their_way.len()
    }

    pub(crate) fn send(&mut self, api: &Api, agent: AgentId, answer: PermissionAnswer) {
        let service = api.service().clone();
        self.on_their_way.push(Box::pin(async move {
            let request_id = answer.request_id.clone();
            let came = service.answer(agent, answer.clone()).await;
            let came = came.map(|outcome| PermissionStateDto::new(answer, outcome)).map_err(Problem::from);
            Answered { agent, request_id, came }
        }));
    }

    /// Waits for the next outcome. `None` if no answer is on its way.
    pub(crate) async fn next(&mut self) -> Option<Answered> {
        self.on_their_way.next().await
    }
}
