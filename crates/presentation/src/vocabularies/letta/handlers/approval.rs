//! A client's answer to a permission request of its agent, which waits within its turn.

use tokenrail_application::PermissionAnswer;
use tokenrail_domain::{AgentId, EventBody, PermissionReply, Sequence, Turn, event_id};

use super::journal::before;
use crate::api::Api;
use crate::error::Problem;
use crate::vocabularies::letta::dto::Approval;
use crate::vocabularies::turns::permission_notices::{AskedPermission, PermissionNotice};

/// Answers the matching permission request. Returns its turn, and the last event that the client already has.
pub(super) async fn approved(
    api: &Api,
    agent: AgentId,
    approval: &Approval,
) -> Result<(Turn, Sequence), Problem> {
    let turn = newest(api, agent).await?;
    let meant = asked(api, &turn, approval).await?;
    let (request, asked) = meant.ok_or_else(nothing_asked)?;
    let option = request.option(approval.approve).map(str::to_owned);
    if approval.approve && option.is_none() {
        return Err(Problem::field(
            "messages",
            "the permission request has no option that allows the tool call",
        ));
    }
    // Clients of Letta send a reason to any agent, so one that the request does not accept is no error.
    let reason = approval.reason.clone().filter(|reason| !reason.trim().is_empty());
    let takes_note = !approval.approve && option.is_some() && request.accepts_note();
    let note = reason.filter(|_| takes_note);
    let reply = PermissionReply { note, ..PermissionReply::of(option) };
    let answer = PermissionAnswer { request_id: request.request_id, reply };
    api.service().answer(agent, answer).await?;
    Ok((turn, asked))
}

fn nothing_asked() -> Problem {
    Problem::field("messages", "the agent has no open permission request that matches this approval")
}

/// The agent's newest turn that has started.
async fn newest(api: &Api, agent: AgentId) -> Result<Turn, Problem> {
    let newest = api.service().get(agent).await?.turn;
    api.service().turn(agent, newest).await?.ok_or_else(nothing_asked)
}

/// Finds the newest permission request of a turn that matches the approval, and the number of its event.
async fn asked(
    api: &Api,
    turn: &Turn,
    approval: &Approval,
) -> Result<Option<(AskedPermission, Sequence)>, Problem> {
    let (mut since, mut meant) = (before(turn), None);
    loop {
        // A permission request is not a delta, so this page leaves out most deltas.
        let page = api.service().messages(turn.agent, since, None).await?;
        for event in page.events.iter().filter(|event| event.turn == turn.number) {
            let EventBody::Notice(notice) = &event.body else { continue };
            let Some(PermissionNotice::Asked(request)) = PermissionNotice::of(notice) else { continue };
            let id = format!("message-{}", event_id(turn.agent, event));
            if approval.is_about(&id, request.call()) {
                meant = Some((request, event.sequence));
            }
        }
        if page.up_to <= since || page.head <= page.up_to {
            return Ok(meant);
        }
        since = page.up_to;
    }
}
