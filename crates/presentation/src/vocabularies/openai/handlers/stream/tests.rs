//! Streams whose agent is deleted at the wrong moment.

use tokenrail_application::Deletion;
use tokenrail_domain::{AgentId, TurnNumber};

use super::*;
use crate::tests::harness::Harness;
use crate::vocabularies::openai::chunks::Chunks;
use crate::vocabularies::openai::handlers::response_turn::{ResponseTurn, missing, missing_completion};
use crate::vocabularies::openai::response_id::ResponseId;
use crate::vocabularies::openai::unsent_writer::UnsentWriter;

/// The problem of a client that resumes a stream whose agent is purged after the server has found it.
async fn purged_meanwhile(writer: impl Writer + 'static, missing: fn() -> Problem) -> Problem {
    let harness = Harness::with(|_, limits| limits.reading.tail_bytes = 1);
    let id: AgentId = harness.launch_to_end("say a").await.parse().unwrap();
    let id = ResponseId { agent: id, turn: TurnNumber::FIRST };
    let response = ResponseTurn::find(&harness.api, &id.to_string()).await.unwrap();
    let place = harness.api.open_stream([127, 0, 0, 1].into()).unwrap();
    let followed = response.follow(&harness.api, place).await.unwrap();
    harness.service.delete(id.agent, Deletion::Purge).await.unwrap();
    resume(&harness.api, followed, writer, missing).await.unwrap_err()
}

#[actix_web::test]
async fn a_client_learns_which_kind_of_turn_is_gone() {
    let turn = ResponseId { agent: AgentId::from_uuid(uuid::Uuid::nil()), turn: TurnNumber::FIRST };
    let chunks = Chunks::new(turn, 3, false);
    let problem = purged_meanwhile(chunks, missing_completion).await;
    assert_eq!((problem.code, &*problem.detail), (Code::NotFound, "no such chat completion"));
    let problem = purged_meanwhile(UnsentWriter::new(3), missing).await;
    assert_eq!((problem.code, &*problem.detail), (Code::NotFound, "no such response"));
}
