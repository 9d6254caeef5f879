//! The open permission requests of all agents.

use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, web};
use tokenrail_application::ListPage;

use crate::api::Api;
use crate::error::Problem;
use crate::query::Query;
use crate::vocabularies::native::dto;
use crate::vocabularies::native::dto::question::OpenQuestionDto;

/// List the open permission requests of all agents, oldest first
///
/// After a restart of the server, a request is listed as soon as the server has read the agent's output again.
#[utoipa::path(get, path = "/api/questions", tag = "agents",
    params(("limit" = Option<u64>, Query, minimum = 1, description = "Default: 100"),
        ("after" = Option<String>, Query, pattern = "^[0-9]{1,18}\\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\\..+$",
            description = "Only requests after this place. Take its value from the `Link` of the previous page")),
    responses((status = 200, body = [OpenQuestionDto], description = "With `Link: rel=next` if there are more",
        headers(("Link" = String)))))]
pub(crate) async fn questions(api: web::Data<Api>, request: HttpRequest) -> Result<HttpResponse, Problem> {
    let query = Query::of(&request)?;
    let limit = query.page_items(api.config().list_agents)?;
    let after = query.get("after").map(dto::question::place).transpose()?;
    let ListPage { items: questions, more } = api.service().list_open_requests(after.as_ref(), limit);
    let mut response = HttpResponse::Ok();
    if let Some(last) = questions.last().filter(|_| more) {
        response.insert_header((header::LINK, dto::question::next_questions(last, limit)));
    }
    let questions = questions.iter().map(|question| OpenQuestionDto::from(&**question));
    Ok(response.json(questions.collect::<Vec<_>>()))
}
