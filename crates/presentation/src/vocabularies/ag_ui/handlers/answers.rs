//! Answers to permission requests.

use std::collections::BTreeMap;

use tokenrail_application::{PermissionAnswer, Refusal};
use tokenrail_domain::{AgentId, PermissionReply, ReplyFault, TurnNumber};

use super::requests::{KnownRequest, is_settled, requests};
use crate::api::Api;
use crate::error::Problem;
use crate::vocabularies::ag_ui::dto::{Answer, Choice};
use crate::vocabularies::ag_ui::interrupt_id::InterruptId;
use crate::vocabularies::turns::permission_notices::AskedPermission;

/// Where the run that follows answers begins.
pub(super) struct Answered {
    pub(super) turn: TurnNumber,
    /// The permission request after which it begins.
    pub(super) after: String,
    /// The later ones that are answered too.
    pub(super) later: Vec<String>,
}

/// Answers permission requests, all or none of them. If one is settled already, by this client or by another, the run
/// goes on as it did then.
pub(super) async fn answered(api: &Api, agent: AgentId, answers: Vec<Answer>) -> Result<Answered, Problem> {
    let known = known(api, agent, &answers).await?;
    let mut replies = Vec::new();
    for (index, Answer { interrupt, choice }) in answers.into_iter().enumerate() {
        let place = format!("resume/{index}");
        let Some(known) = known.get(&interrupt.turn).and_then(|turn| turn.get(&interrupt.request)) else {
            return Err(Problem::field(&format!("{place}/interruptId"), "no such interrupt"));
        };
        let reply = reply(&known.request, choice, &place)?;
        let long = |refusal: Refusal| Problem::field(&format!("{place}/payload"), refusal.to_string());
        api.service().check_length(&reply).map_err(long)?;
        replies.push(PermissionAnswer { request_id: interrupt.request, reply });
    }
    for answer in replies {
        match api.service().answer(agent, answer).await {
            Ok(_) | Err(Refusal::RequestSettled(_)) => {}
            Err(refusal) => return Err(refusal.into()),
        }
    }
    let newest = known.into_iter().next_back().and_then(|(turn, requests)| begin(turn, requests));
    newest.ok_or_else(|| Problem::field("resume", "must contain an answer"))
}

/// Whether all requests that these answers are for are settled, so that the run of the answers has begun. A failover of
/// the database may have lost an answer: then the request is open again.
pub(super) async fn were_given(api: &Api, agent: AgentId, answers: &[Answer]) -> Result<bool, Problem> {
    for (turn, requests) in known(api, agent, answers).await? {
        for (id, known) in requests {
            if known.settled.is_none() && !is_settled(api, (agent, turn), &id, known.at).await? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// The requests that are answered, by their turns and ids.
async fn known(
    api: &Api,
    agent: AgentId,
    answers: &[Answer],
) -> Result<BTreeMap<TurnNumber, BTreeMap<String, KnownRequest>>, Problem> {
    let mut ids: BTreeMap<TurnNumber, Vec<&str>> = BTreeMap::new();
    for Answer { interrupt: InterruptId { turn, request }, .. } in answers {
        ids.entry(*turn).or_default().push(request);
    }
    let mut known = BTreeMap::new();
    for (turn, ids) in ids {
        known.insert(turn, requests(api, agent, turn, &ids).await?);
    }
    Ok(known)
}

fn reply(request: &AskedPermission, choice: Choice, place: &str) -> Result<PermissionReply, Problem> {
    let wrong = |detail: &str| Problem::field(&format!("{place}/payload"), detail);
    let reply = match choice {
        Choice::Reply(reply) => reply,
        Choice::Approve { approved, note } => {
            let option = request.option(approved).map(str::to_owned);
            if approved && option.is_none() {
                return Err(wrong("the permission request has no option that allows this"));
            }
            PermissionReply { note, ..PermissionReply::of(option) }
        }
    };
    match request.fault(&reply) {
        None => Ok(reply),
        Some(ReplyFault::UnknownOption) => Err(wrong("must be an option of the permission request")),
        Some(fault) => Err(wrong(&fault.to_string())),
    }
}

/// The run begins after the newest request, or after the first one that was open when that was asked: no client has
/// received what came after an open request.
fn begin(turn: TurnNumber, requests: BTreeMap<String, KnownRequest>) -> Option<Answered> {
    let mut requests: Vec<KnownRequest> = requests.into_values().collect();
    requests.sort_unstable_by_key(|known| known.at);
    let newest = requests.last()?;
    let begin = requests.iter().position(|known| known.was_open_at(newest))?;
    let mut ids = requests.into_iter().skip(begin).map(|known| known.request.request_id);
    Some(Answered { turn, after: ids.next()?, later: ids.collect() })
}

#[cfg(test)]
mod tests {
    use tokenrail_domain::Sequence;

    use super::*;

    /// Requests with the numbers of the events with which they were asked and settled. 0: it is open.
    fn begun_after(requests: &[(&str, u64, u64)]) -> Option<(String, Vec<String>)> {
        let known = |(id, at, settled): &(&str, u64, u64)| {
            let request = format!(r#"{{"requestId":"{id}","toolName":"Bash","input":{{}},"options":[]}}"#);
            let request = serde_json::from_str(&request).unwrap();
            let settled = (0 < *settled).then_some(Sequence(*settled));
            ((*id).to_owned(), KnownRequest { request, at: Sequence(*at), settled })
        };
        begin(TurnNumber::FIRST, requests.iter().map(known).collect())
            .map(|Answered { after, later, .. }| (after, later))
    }

    #[test]
    fn a_run_begins_after_the_first_request_that_was_open_when_the_newest_was_asked() {
        for (requests, after, later) in [
            (&[("a", 2, 0)][..], "a", &[][..]),
            (&[("a", 2, 0), ("b", 4, 0)], "a", &["b"]),
            (&[("b", 2, 0), ("a", 4, 0)], "b", &["a"]),
            (&[("a", 2, 9), ("b", 4, 8)], "a", &["b"]),
            (&[("a", 2, 3), ("b", 4, 0)], "b", &[]),
            (&[("a", 2, 3), ("b", 4, 0), ("c", 5, 0)], "b", &["c"]),
            (&[("a", 2, 9), ("b", 4, 5), ("c", 6, 0)], "a", &["b", "c"]),
            (&[("a", 2, 5), ("b", 4, 0), ("c", 6, 0)], "b", &["c"]),
        ] {
            let later = later.iter().copied().map(str::to_owned).collect();
            assert_eq!(begun_after(requests), Some((after.to_owned(), later)), "{requests:?}");
        }
        assert_eq!(begun_after(&[]), None);
    }
}
