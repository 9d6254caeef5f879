//! A run as clients see it.

use tokenrail_domain::Turn;

use super::journal;
use crate::api::Api;
use crate::error::Problem;
use crate::json::IsoTime;
use crate::vocabularies::letta::dto::RunDto;
use crate::vocabularies::letta::run_id::RunId;

/// The run, with its end as read from the journal.
pub(super) async fn shown(api: &Api, run: RunId, turn: &Turn) -> Result<RunDto, Problem> {
    let end = journal::end(api, turn).await?;
    Ok(run_dto(run, turn, end))
}

pub(super) fn run_dto(run: RunId, turn: &Turn, end: Option<journal::End>) -> RunDto {
    RunDto::new(run.to_string(), turn, end.map(|end| (end.stop_reason, IsoTime(end.at))))
}
