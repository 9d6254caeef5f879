//! The agent types as models.

use actix_web::{HttpResponse, web};

use crate::api::Api;
use crate::error::{Code, Problem};
use crate::vocabularies::openai::dto::{ListDto, ModelChoice, ModelDto};

/// List the agent types as OpenAI models
///
/// The default type comes first.
#[utoipa::path(get, path = "/openai/v1/models", tag = "openai",
    responses((status = 200, body = serde_json::Value)))]
pub(crate) async fn models(api: web::Data<Api>) -> HttpResponse {
    let mut types = api.service().types().await;
    types.sort_by_key(|info| !info.default);
    HttpResponse::Ok()
        .json(ListDto::new(types.iter().map(|info| ModelDto::new(&info.name)).collect(), ModelDto::id))
}

/// Get an agent type as an OpenAI model
///
/// The id is an agent type, or an agent type, a slash and a model.
#[utoipa::path(get, path = "/openai/v1/models/{id}", tag = "openai",
    params(("id" = String, Path)),
    responses((status = 200, body = ModelDto)))]
pub(crate) async fn model(api: web::Data<Api>, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    let missing =
        || Problem::new(Code::NotFound, "no such model: GET /openai/v1/models lists the agent types");
    let choice = ModelChoice::read(&id).ok_or_else(missing)?;
    let is_known = api.service().types().await.iter().any(|info| info.name == choice.kind);
    if is_known { Ok(HttpResponse::Ok().json(ModelDto::new(&id))) } else { Err(missing()) }
}
