use actix_web::{HttpResponse, web};

use super::fold::TelegraphFold;
use crate::api::Api;
use crate::blocks::{BlockFold as _, BlockWriter, EventBlock};
use crate::error::Problem;
use crate::query;
use crate::vocabularies::turns::turn_events::{TurnEvents, TurnNext};

/// Read the telegrams of an agent's latest turn
#[utoipa::path(get, path = "/telegraph/{id}", params(("id" = String, Path)),
    responses((status = 200, body = EventBlock, content_type = "text/event-stream")))]
pub(super) async fn telegrams(api: web::Data<Api>, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    let agent = api.service().get(query::agent_id(&id)?).await?;
    let turn = api.service().turn(agent.id, agent.turn).await?.ok_or_else(Problem::not_found)?;
    let mut events = TurnEvents::follow(&api, agent.id, &turn).await?;
    let (mut fold, mut out) = (TelegraphFold::default(), BlockWriter::default());
    while let TurnNext::Events(page) = events.next().await? {
        page.events().iter().for_each(|event| fold.blocks(event, &mut out));
    }
    Ok(HttpResponse::Ok().content_type("text/event-stream").body(out.take()))
}
