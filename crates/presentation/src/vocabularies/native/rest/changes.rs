//! The files that an agent has changed.

use actix_web::HttpResponse;
use tokenrail_application::{FileChoice, Refusal};

use crate::by_id::ById;
use crate::error::Problem;
use crate::query::{self, Query};
use crate::vocabularies::native::dto::changes::ChangesDto;

/// List the files that differ from the commit at the start of a turn
///
/// Git compares the repository of the agent's folder with the commit that HEAD pointed to when the turn started. The
/// files are those of the whole repository as they are now, and include what others changed.
#[utoipa::path(get, path = "/api/agents/{id}/changes", tag = "changes",
    params(("id" = String, Path),
        ("turn" = Option<u32>, Query, description = "Default: the first turn that started in a repository")),
    responses((status = 200, body = ChangesDto)))]
pub(crate) async fn changes(ById { api, id, request }: ById) -> Result<HttpResponse, Problem> {
    let (id, query) = (query::agent_id(&id)?, Query::of(&request)?);
    match api.service().changes(id, query.turn("turn")?).await {
        Ok(changes) => Ok(HttpResponse::Ok().json(ChangesDto::from(&changes))),
        Err(Refusal::ChangesUnknown(why)) => Ok(HttpResponse::Ok().json(ChangesDto::from(why))),
        Err(refusal) => Err(refusal.into()),
    }
}

/// Get a unified diff of the changes since a turn started
///
/// The diff has complete files only, so `git apply` accepts it, except for binary files.
#[utoipa::path(get, path = "/api/agents/{id}/changes/patch", tag = "changes",
    params(("id" = String, Path),
        ("turn" = Option<u32>, Query, description = "Default: the first turn that started in a repository"),
        ("path" = Option<String>, Query, pattern = "^(?:(?:\\.{0,2}[^/.\\u0000]|\\.{3})[^/\\u0000]*/)*(?:\\.{0,2}[^/.\\u0000]|\\.{3})[^/\\u0000]*/?$",
            description = "Only this file, by its `path` in the list"),
        ("oldPath" = Option<String>, Query, pattern = "^(?:(?:\\.{0,2}[^/.\\u0000]|\\.{3})[^/\\u0000]*/)*(?:\\.{0,2}[^/.\\u0000]|\\.{3})[^/\\u0000]*/?$",
            description = "The `oldPath` of this file, if it has one")),
    responses((status = 200, content_type = "text/x-diff", body = String,
        description = "With `Tokenrail-Truncated: true` if files are left out because of `limits.patch_bytes`",
        headers(("Tokenrail-Truncated" = String)))))]
pub(crate) async fn patch(ById { api, id, request }: ById) -> Result<HttpResponse, Problem> {
    let (id, query) = (query::agent_id(&id)?, Query::of(&request)?);
    let old_path = path(&query, "oldPath")?;
    let file = path(&query, "path")?.map(|path| FileChoice { path, old_path });
    let patch = api.service().patch(id, query.turn("turn")?, file).await?;
    let mut response = HttpResponse::Ok();
    response.content_type("text/x-diff; charset=utf-8");
    if patch.truncated {
        response.insert_header(("Tokenrail-Truncated", "true"));
    }
    Ok(response.body(patch.text))
}

fn path(query: &Query, name: &'static str) -> Result<Option<String>, Problem> {
    match query.get(name) {
        Some(path) if !is_below_root(path) => Err(Problem::parameter(
            name,
            "must be the path of a file below the root of the repository, without parts `.` and `..`",
        )),
        path => Ok(path.map(str::to_owned)),
    }
}

/// Whether git can have listed this path. A repository within the repository has a slash at its end.
fn is_below_root(path: &str) -> bool {
    let parts = path.strip_suffix('/').unwrap_or(path);
    !path.contains('\0') && parts.split('/').all(|part| !matches!(part, "" | "." | ".."))
}
