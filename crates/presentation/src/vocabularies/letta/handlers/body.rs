//! The bodies of requests, which clients may leave out.

use actix_web::{HttpRequest, web};

use crate::api::Api;
use crate::error::Problem;
use crate::query;
use crate::vocabularies::letta::dto::{Resume, resume};

/// Reads the body. `None` if there is none.
pub(super) async fn body(
    api: &Api,
    request: &HttpRequest,
    payload: web::Payload,
) -> Result<Option<web::Bytes>, Problem> {
    query::optional_body(request, payload, api.config()).await
}

/// Reads the body of a request to resume a stream.
pub(super) async fn resume_body(
    api: &Api,
    request: &HttpRequest,
    payload: web::Payload,
) -> Result<Resume, Problem> {
    let body = body(api, request, payload).await?;
    resume(body.as_deref(), api.config().json_depth)
}
