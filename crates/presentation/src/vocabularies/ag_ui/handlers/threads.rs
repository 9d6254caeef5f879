//! Threads: streams all runs of a thread, and cancels those that run.

use actix_web::{HttpResponse, web};
use tokenrail_application::AfterLastTurn;
use tokenrail_domain::Sequence;

use super::streams::ThreadStream;
use super::thread::{after, agent_of, no_thread};
use crate::api::Api;
use crate::blocks::EventBlock;
use crate::by_id::ById;
use crate::error::Problem;
use crate::json::AgentRefDto;
use crate::peer::peer;
use crate::vocabularies::ag_ui::cursor::ThreadCursor;
use crate::vocabularies::turns::block_stream::{BEAT, event_stream, streamed};

/// Stream the runs of an AG-UI thread
///
/// All runs so far, with what the user said, and then the run that is in progress, until it ends. A run also
/// ends with an interrupt: a permission request.
#[utoipa::path(get, path = "/ag-ui/threads/{id}", tag = "ag-ui", operation_id = "ag_ui_connect",
    params(("id" = String, Path, description = "The id of the thread, or of the agent"),
        ("after" = Option<String>, Query, description = "The cursor of the last event that the client has")),
    responses((status = 200, body = EventBlock, content_type = "text/event-stream")))]
pub(crate) async fn connect(ById { api, id, request }: ById) -> Result<HttpResponse, Problem> {
    let after = after(&request)?;
    let agent = agent_of(&api, &id).await?.ok_or_else(no_thread)?;
    if agent.head < after.sequence {
        return Err(api.service().cursor_ahead(agent.head).into());
    }
    let place = api.open_stream(peer(request.peer_addr()))?;
    // A fold needs the whole turn.
    let begin = if after == ThreadCursor::START {
        Sequence::START
    } else {
        api.service().turn_begin(agent.id, after.sequence.before()).await?
    };
    let (_, follower) = api.service().follow(agent.id, Some(begin), AfterLastTurn::End).await?;
    let source = ThreadStream::new(Api::clone(&api), follower, id, after);
    Ok(event_stream().streaming(streamed(source, BEAT, api.config().heartbeat, place)))
}

/// Cancel the runs of an AG-UI thread
///
/// Cancels the running turn and the queued turns. The streams of the runs show how these turns end.
#[utoipa::path(post, path = "/ag-ui/threads/{id}/cancel", tag = "ag-ui", operation_id = "ag_ui_cancel",
    params(("id" = String, Path, description = "The id of the thread, or of the agent")),
    responses((status = 202, body = AgentRefDto)))]
pub(crate) async fn cancel(api: web::Data<Api>, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    let agent = agent_of(&api, &id).await?.ok_or_else(no_thread)?.id;
    api.service().cancel(agent).await?;
    Ok(HttpResponse::Accepted().json(AgentRefDto { agent_id: agent.into() }))
}
