//! Answers to permission requests.

use tokenrail_application::{PermissionAnswer, Refusal};
use tokenrail_domain::{AgentId, EventBody, PermissionReply};

use crate::api::Api;
use crate::error::Problem;
use crate::permission_notices::{AskedPermission, PermissionNotice};
use crate::vocabularies::ag_ui::dto::{Answer, Choice};
use crate::vocabularies::ag_ui::interrupt_id::InterruptId;

/// Answers permission requests, and returns the last one. If one is settled already, by this client or by another, the
/// run goes on as it did then.
pub(super) async fn answered(
    api: &Api,
    agent: AgentId,
    answers: Vec<Answer>,
) -> Result<InterruptId, Problem> {
    let mut last = None;
    for (index, Answer { interrupt, choice }) in answers.into_iter().enumerate() {
        let place = format!("resume/{index}");
        let Some(request) = asked(api, agent, &interrupt).await? else {
            return Err(Problem::field(&format!("{place}/interruptId"), "no such interrupt"));
        };
        let reply = match choice {
            Choice::Reply(reply) => reply,
            Choice::Approve { approved, note } => {
                let option = request.option(approved).map(str::to_owned);
                if approved && option.is_none() {
                    let detail = "the permission request has no option that allows this";
                    return Err(Problem::field(&format!("{place}/payload"), detail));
                }
                PermissionReply { note, ..PermissionReply::of(option) }
            }
        };
        let request_id = interrupt.request.clone();
        match api.service().answer(agent, PermissionAnswer { request_id, reply }).await {
            Ok(_) | Err(Refusal::RequestSettled(_)) => {}
            Err(refusal) => return Err(refusal.into()),
        }
        last = Some(interrupt);
    }
    last.ok_or_else(|| Problem::field("resume", "must contain an answer"))
}

/// The permission request with this id in its turn.
async fn asked(
    api: &Api,
    agent: AgentId,
    interrupt: &InterruptId,
) -> Result<Option<AskedPermission>, Problem> {
    let turn = api.service().turn(agent, interrupt.turn).await?;
    let Some(first) = turn.and_then(|turn| turn.first_sequence) else { return Ok(None) };
    let mut since = first.before();
    loop {
        // A permission request is not a delta, so this page leaves out most deltas.
        let page = api.service().messages(agent, since, None).await?;
        for event in &page.events {
            if event.turn != interrupt.turn {
                return Ok(None);
            }
            let EventBody::Notice(notice) = &event.body else { continue };
            if let Some(PermissionNotice::Asked(request)) = PermissionNotice::of(notice)
                && request.request_id == interrupt.request
            {
                return Ok(Some(request));
            }
        }
        if page.up_to <= since || page.head <= page.up_to {
            return Ok(None);
        }
        since = page.up_to;
    }
}
