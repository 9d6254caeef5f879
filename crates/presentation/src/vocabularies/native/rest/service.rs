//! The server itself: agent types, tickets, health and metrics.

use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, web};
use tokenrail_application::Readiness;
use tokenrail_domain::Timestamp;

use crate::api::Api;
use crate::error::{Code, Problem};
use crate::json::IsoTime;
use crate::peer::peer;
use crate::query;
use crate::vocabularies::native::dto;
use crate::vocabularies::native::dto::agent::{ServerDto, ServiceStatusDto, TicketDto};
use crate::vocabularies::native::dto::agent_type::AgentTypeDto;
use crate::vocabularies::native::dto::requests::TicketBody;

/// List the configured agent types and whether they can start
#[utoipa::path(get, path = "/api/agent-types", tag = "service", responses((status = 200, body = [AgentTypeDto])))]
pub(crate) async fn types(api: web::Data<Api>) -> HttpResponse {
    let types = api.service().types().await;
    let one = |kind| AgentTypeDto::new(kind, api.config());
    HttpResponse::Ok().json(types.iter().map(one).collect::<Vec<_>>())
}

/// Create a ticket for one WebSocket or one event stream
#[utoipa::path(post, path = "/api/tickets", tag = "service", request_body = Option<TicketBody>,
    responses((status = 201, body = TicketDto, description = "A short-lived ticket for one use. An event \
         stream that was opened with it can be resumed with `Last-Event-ID`")))]
pub(crate) async fn ticket(
    api: web::Data<Api>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let config = api.config();
    let path = match query::optional_body(&request, payload, config).await? {
        Some(body) => dto::requests::ticket_path(&body, config.json_depth)?,
        None => None,
    };
    let now = api.service().now();
    let expires = Timestamp(now.0 + config.ticket_age.as_millis() as i64);
    let origin = request.headers().get(header::ORIGIN).and_then(|origin| origin.to_str().ok());
    match api.tickets().issue(api.random(), path, origin.map(str::to_owned), now).await? {
        Some(ticket) => {
            let dto = TicketDto { ticket: &ticket, expires_at: IsoTime(expires) };
            Ok(HttpResponse::Created().json(dto))
        }
        None => {
            Err(Problem::new(Code::CapacityExhausted, "too many unused tickets; try again in 30 seconds"))
        }
    }
}

/// Get the server's process
#[utoipa::path(get, path = "/api/server", tag = "service", responses((status = 200, body = ServerDto)))]
pub(crate) async fn server(request: HttpRequest) -> HttpResponse {
    let is_here = peer(request.peer_addr()).is_loopback();
    HttpResponse::Ok().json(ServerDto { pid: is_here.then(std::process::id) })
}

/// Check whether the server is running
#[utoipa::path(get, path = "/healthz", tag = "service", responses((status = 200, body = ServiceStatusDto)))]
pub(crate) async fn health() -> HttpResponse {
    HttpResponse::Ok().json(ServiceStatusDto { status: "ok", bell: None })
}

/// Check whether the server can save events and start agents
#[utoipa::path(get, path = "/readyz", tag = "service", responses((status = 200, body = ServiceStatusDto)))]
pub(crate) async fn ready(api: web::Data<Api>) -> Result<HttpResponse, Problem> {
    match api.service().check().await.map_err(Problem::from) {
        Ok(Readiness { hints_arrive }) => {
            let bell = hints_arrive.map(|arrive| if arrive { "working" } else { "polling" });
            Ok(HttpResponse::Ok().json(ServiceStatusDto { status: "ready", bell }))
        }
        // Whatever is wrong with the database, the server itself may become ready again.
        Err(problem) if problem.code == Code::StoreFailed => {
            let detail = "the database accepts no writes; the server log has the cause";
            Err(Problem::new(Code::StoreBusy, detail))
        }
        Err(problem) => Err(problem),
    }
}

/// Read the metrics of the server in the OpenMetrics format
#[utoipa::path(get, path = "/metrics", tag = "service",
    responses((status = 200, body = String, content_type = "application/openmetrics-text")))]
pub(crate) async fn metrics(api: web::Data<Api>) -> Result<HttpResponse, Problem> {
    let text = api.metrics().text(&api.service().stats(), api.open_streams());
    let text = text.map_err(|_| Problem::new(Code::StoreFailed, "cannot serialize the metrics"))?;
    Ok(HttpResponse::Ok()
        .content_type("application/openmetrics-text; version=1.0.0; charset=utf-8")
        .body(text))
}
