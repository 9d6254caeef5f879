//! The images of prompts.

use actix_web::http::header::{
    self, CacheControl, CacheDirective, ETag, EntityTag, Header as _, IfNoneMatch,
};
use actix_web::{HttpRequest, HttpResponse, web};
use ring::digest::{SHA256, digest};

use crate::api::Api;
use crate::error::{Code, Problem};
use crate::hex::hex;
use crate::query;
use crate::vocabularies::prompts::large_body::{closing, parsed};

/// Get an image of a turn's prompt
///
/// The image never changes. It is one of four types that contain no scripts. A client may cache it, but must revalidate
/// it with `If-None-Match` before each use.
#[utoipa::path(get, path = "/api/agents/{id}/turns/{n}/images/{k}", tag = "turns",
    params(("id" = String, Path), ("n" = u32, Path, description = "The number of the turn"),
        ("k" = u32, Path, description = "The position of the image in the prompt, from 0"),
        ("If-None-Match" = Option<String>, Header)),
    responses(
        (status = 200, description = "The image", content(
            (String = "image/png"), (String = "image/jpeg"), (String = "image/gif"), (String = "image/webp")),
            headers(("ETag" = String))),
        (status = 304, description = "Not modified: the client already has this image", headers(("ETag" = String)))))]
pub(crate) async fn image(
    api: web::Data<Api>,
    path: web::Path<(String, String, String)>,
    request: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let (id, turn, position) = path.into_inner();
    let id = query::agent_id(&id)?;
    let place = query::turn_number(&turn).zip(query::position(&position));
    let (turn, position) = place.ok_or_else(|| Problem::new(Code::NotFound, "no such image"))?;
    // The response keeps it until the client has read the image.
    let room = api.large_response_permit(api.config().image_bytes).await?;
    let image = api.service().prompt_image(id, turn, position).await?.holding(room);
    let hash = parsed(&api, image.data().clone(), |data| hex(digest(&SHA256, data).as_ref())).await;
    let tag = EntityTag::new_strong(hash.ok_or_else(closing)?);
    // A browser must not show it to the next user, or after the agent was purged.
    let keep = CacheControl(vec![CacheDirective::Private, CacheDirective::NoCache]);
    if is_known(&request, &tag) {
        return Ok(HttpResponse::NotModified().insert_header(keep).insert_header(ETag(tag)).finish());
    }
    Ok(HttpResponse::Ok()
        .content_type(image.media_type().as_str())
        .insert_header((header::CONTENT_DISPOSITION, "inline"))
        .insert_header(keep)
        .insert_header(ETag(tag))
        .body(image.data().clone()))
}

fn is_known(request: &HttpRequest, tag: &EntityTag) -> bool {
    match IfNoneMatch::parse(request) {
        Ok(IfNoneMatch::Any) => request.headers().contains_key(header::IF_NONE_MATCH),
        Ok(IfNoneMatch::Items(known)) => known.iter().any(|known| known.weak_eq(tag)),
        Err(_) => false,
    }
}
