//! Responses that exist: retrieve, resume, cancel and delete them.

use actix_web::{HttpResponse, web};

use super::response_turn::{ResponseTurn, missing, place};
use super::stream::resume;
use super::whole;
use crate::api::Api;
use crate::blocks::EventBlock;
use crate::by_id::ById;
use crate::error::Problem;
use crate::query::{self, Query};
use crate::vocabularies::openai::dto::{Deleted, InputItem, ListDto};
use crate::vocabularies::openai::unsent_writer::UnsentWriter;

/// Retrieve a response, or resume its stream
#[utoipa::path(get, path = "/openai/v1/responses/{id}", tag = "openai",
    params(("id" = String, Path), ("stream" = Option<bool>, Query),
        ("starting_after" = Option<u64>, Query, description = "The last `sequence_number` that the client has.")),
    responses((status = 200,
        content((serde_json::Value = "application/json"), (EventBlock = "text/event-stream")))))]
pub(crate) async fn retrieve(ById { api, id, request }: ById) -> Result<HttpResponse, Problem> {
    let query = Query::of(&request)?;
    let from = from(&query)?;
    let response = ResponseTurn::find(&api, &id).await?;
    if query.flag("stream")? {
        let followed = response.follow(&api, place(&api, &request)?).await?;
        return resume(&api, followed, UnsentWriter::new(from), missing).await;
    }
    whole::now(&api, &response).await
}

/// The number of the first event that the client does not have.
pub(super) fn from(query: &Query) -> Result<u64, Problem> {
    let Some(after) = query.get("starting_after") else { return Ok(0) };
    let wrong = |_| Problem::parameter("starting_after", "must be a whole number, 0 or greater");
    Ok(query::cursor(after).map_err(wrong)?.saturating_add(1))
}

/// Cancel a response
///
/// Cancels the turn, whether it is queued or running. A response that has ended stays as it is.
#[utoipa::path(post, path = "/openai/v1/responses/{id}/cancel", tag = "openai",
    params(("id" = String, Path)),
    responses((status = 200, body = serde_json::Value)))]
pub(crate) async fn cancel(api: web::Data<Api>, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    let response = ResponseTurn::find(&api, &id).await?;
    api.service().cancel_turn(response.turn.agent, response.turn.number).await?;
    response.stopped(&api).await?;
    let response = ResponseTurn::find(&api, &id).await?;
    whole::now(&api, &response).await
}

/// Delete a conversation
///
/// Stops the agent of the response and removes it from lists, with all of its responses. Only the newest response of a
/// conversation can be deleted.
#[utoipa::path(delete, path = "/openai/v1/responses/{id}", tag = "openai",
    params(("id" = String, Path)),
    responses((status = 200, body = Deleted)))]
pub(crate) async fn delete(api: web::Data<Api>, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    let response = ResponseTurn::find(&api, &id).await?;
    response.delete_conversation(&api, "response_id").await?;
    Ok(HttpResponse::Ok().json(Deleted::new(response.id().to_string())))
}

/// List the input of a response
///
/// The prompt of its turn. Earlier ones are the input of earlier responses.
#[utoipa::path(get, path = "/openai/v1/responses/{id}/input_items", tag = "openai",
    params(("id" = String, Path)),
    responses((status = 200, body = serde_json::Value)))]
pub(crate) async fn input_items(api: web::Data<Api>, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    let response = ResponseTurn::find(&api, &id).await?;
    Ok(HttpResponse::Ok().json(ListDto::new(vec![InputItem::new(&response.turn)], InputItem::id)))
}
