//! A client says whether a tool may be called: the answer to a question of its agent, which waits within its turn.

use tokenrail_application::PermissionAnswer;
use tokenrail_domain::{AgentId, EventBody, Sequence, Turn, event_id};

use super::journal::before;
use crate::api::Api;
use crate::error::Problem;
use crate::questions::{Question, QuestionNotice};
use crate::vocabularies::letta::dto::Approval;

/// Settles the question that is meant; gives its turn, and the event up to which the client knows of it.
pub(super) async fn approved(
    api: &Api,
    agent: AgentId,
    approval: &Approval,
) -> Result<(Turn, Sequence), Problem> {
    let turn = newest(api, agent).await?;
    let meant = question(api, &turn, approval).await?;
    let (question, asked) = meant.ok_or_else(nothing_asked)?;
    let option = question.option(approval.approve).map(str::to_owned);
    if approval.approve && option.is_none() {
        return Err(Problem::field(
            "messages",
            "the permission request has no option that allows the tool call",
        ));
    }
    let answer = PermissionAnswer { question: question.request_id, option };
    api.service().answer(agent, answer).await?;
    Ok((turn, asked))
}

fn nothing_asked() -> Problem {
    Problem::field("messages", "the agent has no open permission request that matches this approval")
}

/// The turn that the agent is in, or was in last.
async fn newest(api: &Api, agent: AgentId) -> Result<Turn, Problem> {
    let newest = api.service().get(agent).await?.turn;
    api.service().turn(agent, newest).await?.ok_or_else(nothing_asked)
}

/// The newest question of a turn that is meant, and its event.
async fn question(
    api: &Api,
    turn: &Turn,
    approval: &Approval,
) -> Result<Option<(Question, Sequence)>, Problem> {
    let (mut since, mut meant) = (before(turn), None);
    loop {
        // A question is no delta: the page leaves out most of those.
        let page = api.service().messages(turn.agent, since, None).await?;
        for event in page.events.iter().filter(|event| event.turn == turn.number) {
            let EventBody::Notice(notice) = &event.body else { continue };
            let Some(QuestionNotice::Asked(question)) = QuestionNotice::of(notice) else { continue };
            let id = format!("message-{}", event_id(turn.agent, event));
            if approval.is_about(&id, question.call()) {
                meant = Some((question, event.sequence));
            }
        }
        if page.up_to <= since || page.head <= page.up_to {
            return Ok(meant);
        }
        since = page.up_to;
    }
}
