//! The servers that share the database.

use actix_web::{HttpResponse, web};
use tokenrail_domain::NodeId;

use crate::api::Api;
use crate::error::{Code, Problem};
use crate::vocabularies::native::dto::node::NodeDto;

/// List the nodes: the servers that share the database
#[utoipa::path(get, path = "/api/nodes", tag = "service",
    responses((status = 200, body = [NodeDto], description = "Sorted by id. A database that is not shared has one node")))]
pub(crate) async fn nodes(api: web::Data<Api>) -> Result<HttpResponse, Problem> {
    let nodes = api.service().nodes().await?;
    Ok(HttpResponse::Ok().json(nodes.iter().map(NodeDto::from).collect::<Vec<_>>()))
}

/// Remove a node that will not come back
///
/// Stop its server first. Its open turns are ended; its agents stay readable. If the server starts again, it joins the
/// database as a node again. A repeated request has the same response.
#[utoipa::path(delete, path = "/api/nodes/{id}", tag = "service", params(("id" = u64, Path)),
    responses((status = 204, description = "The node is gone")))]
pub(crate) async fn forget(api: web::Data<Api>, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    let id: NodeId = id.parse().map(NodeId).map_err(|_| Problem::new(Code::NotFound, "no such node"))?;
    api.service().forget_node(id).await?;
    Ok(HttpResponse::NoContent().finish())
}
