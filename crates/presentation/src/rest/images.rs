//! The images of prompts.

use actix_web::http::header;
use actix_web::{HttpResponse, web};

use crate::api::Api;
use crate::error::{Code, Problem};
use crate::query;

/// Get an image of a turn's prompt
///
/// The image never changes. It is one of four types that contain no scripts.
#[utoipa::path(get, path = "/api/agents/{id}/turns/{n}/images/{k}", tag = "turns",
    params(("id" = String, Path), ("n" = u32, Path, description = "The number of the turn"),
        ("k" = u32, Path, description = "The position of the image in the prompt, from 0")),
    responses((status = 200, description = "The image", content(
        (String = "image/png"), (String = "image/jpeg"), (String = "image/gif"), (String = "image/webp")))))]
pub(crate) async fn image(
    api: web::Data<Api>,
    path: web::Path<(String, String, String)>,
) -> Result<HttpResponse, Problem> {
    let (id, turn, position) = path.into_inner();
    let id = query::agent_id(&id)?;
    let place = query::turn_number(&turn).zip(query::position(&position));
    let (turn, position) = place.ok_or_else(|| Problem::new(Code::NotFound, "no such image"))?;
    let image = api.service().prompt_image(id, turn, position).await?;
    Ok(HttpResponse::Ok()
        .content_type(image.media_type().as_str())
        .insert_header((header::CONTENT_DISPOSITION, "inline"))
        .insert_header((header::CACHE_CONTROL, "private, max-age=31536000, immutable"))
        .body(image.data().clone()))
}
