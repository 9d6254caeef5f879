//! What clients ask of any node: launches, messages, cancels, answers.

use std::rc::Rc;
use std::time::Duration;

use tokenrail_application::{AnswerOutcome, CommandKey, Launch, Refusal};
use tokenrail_domain::{AgentId, PermissionReply};
use tokenrail_ports::PermissionAnswer;
use tokio::time::{sleep, timeout};

use super::Cluster;
use super::node::Life;
use crate::dice::Dice;
use crate::journal::QuestionSoFar;
use crate::questions::OPTIONS;

/// A client that has no answer for so long asks another node.
const PATIENCE: Duration = Duration::from_secs(12);
/// A client gives up after so many attempts.
const ATTEMPTS: usize = 40;

/// Any node that clients can talk to.
pub(super) fn any(cluster: &Cluster, dice: &mut Dice) -> Option<Rc<Life>> {
    let at = dice.below(cluster.nodes.len() as u64) as usize;
    cluster.nodes[at].life().filter(|life| life.is_serving.get())
}

fn ask<T>(life: &Life, asked: impl Future<Output = T>) -> impl Future<Output = Option<T>> {
    ask_within(PATIENCE, life, asked)
}

/// Asks a node. `None` if it is gone, or takes too long.
pub(super) async fn ask_within<T>(
    patience: Duration,
    life: &Life,
    asked: impl Future<Output = T>,
) -> Option<T> {
    tokio::select! {
        biased;
        () = life.ended.cancelled() => None,
        answer = timeout(patience, asked) => answer.ok(),
    }
}

async fn pause(dice: &mut Dice) {
    sleep(Duration::from_millis(dice.pick(&[5, 300, 2000, 9000]))).await;
}

/// Launches the agent of a slot, and sends it messages and cancels.
pub(super) async fn command(cluster: &Cluster, slot: usize) {
    let mut dice = cluster.dice(&format!("commander {slot}"));
    sleep(Duration::from_millis(dice.below(60_000))).await;
    if let Some(agent) = launch(cluster, slot, &mut dice).await {
        cluster.agents.borrow_mut().insert(slot, agent);
        for number in 0..cluster.faults.deeds {
            sleep(Duration::from_millis(dice.pick(&[5, 2000, 20_000, 40_000]))).await;
            if dice.chance(cluster.faults.cancels) {
                if let Some(life) = any(cluster, &mut dice)
                    && let Some(Ok(())) = ask(&life, life.service.cancel(agent)).await
                {
                    cluster.reach("an agent was cancelled");
                }
            } else {
                send(cluster, agent, format!("message {slot} {number}"), &mut dice).await;
            }
        }
    }
    cluster.commanders.set(cluster.commanders.get() - 1);
}

async fn launch(cluster: &Cluster, slot: usize, dice: &mut Dice) -> Option<AgentId> {
    let prompt = format!("launch {slot}");
    for _ in 0..ATTEMPTS {
        if let Some(life) = any(cluster, dice) {
            let key = CommandKey { key: prompt.clone(), body: prompt.clone() };
            let launch = Launch { prompt: prompt.clone(), idempotency: Some(key), ..Launch::default() };
            if let Some(Ok(launched)) = ask(&life, life.service.launch(launch)).await {
                let id = launched.agent.id;
                cluster.accepted.borrow_mut().push((id, prompt));
                return Some(id);
            }
        }
        pause(dice).await;
    }
    None
}

async fn send(cluster: &Cluster, agent: AgentId, prompt: String, dice: &mut Dice) {
    let is_removed = cluster.removed.borrow().contains(&agent);
    for _ in 0..ATTEMPTS {
        if let Some(life) = any(cluster, dice) {
            let key = CommandKey { key: prompt.clone(), body: prompt.clone() };
            match ask(&life, life.service.send(agent, prompt.as_str().into(), Some(key))).await {
                Some(Ok(_)) if is_removed && cluster.removed.borrow().contains(&agent) => {
                    return cluster.fail("G11: an agent that was told to be deleted accepts a message");
                }
                Some(Ok(_)) => {
                    let home = cluster.disk.saved_agent(agent).and_then(|agent| agent.home);
                    if home != life.place().map(super::Place::node) {
                        cluster.reach("a message was sent to another node");
                    }
                    cluster.accepted.borrow_mut().push((agent, prompt));
                    return;
                }
                Some(Err(Refusal::NodeUnavailable { .. })) => {
                    cluster.reach("a message was refused: node lost");
                    let home = cluster.disk.saved_agent(agent).and_then(|agent| agent.home);
                    if cluster.nodes.iter().any(|node| Some(node.id) == home && node.is_gone()) {
                        return;
                    }
                }
                Some(Err(Refusal::Deleted)) if cluster.promises.may_be_deleted(agent) => return,
                Some(Err(Refusal::NotFound(_))) if cluster.promises.may_be_purged(agent) => return,
                Some(Err(Refusal::NotFound(_) | Refusal::Deleted)) => {
                    cluster.fail("G11: a launched agent is unknown or deleted");
                    return;
                }
                _ => {}
            }
        }
        pause(dice).await;
    }
}

/// Answers the permission requests of an agent, at any node.
pub(super) async fn answer(cluster: &Cluster, slot: usize) {
    let mut dice = cluster.dice(&format!("answerer {slot}"));
    loop {
        pause(&mut dice).await;
        let agent = cluster.agents.borrow().get(&slot).copied();
        let Some((agent, life)) = agent.zip(any(cluster, &mut dice)) else { continue };
        life.world.sync(agent);
        let open = life.world.lock().ledgers.get(&agent).and_then(|ledger| {
            let mut questions = ledger.questions.iter();
            questions
                .find(|(_, so_far)| **so_far == QuestionSoFar::Open)
                .map(|(question, _)| question.clone())
        });
        let Some(request_id) = open else { continue };
        let option = dice.pick(&OPTIONS).to_owned();
        let reply = PermissionReply::of(Some(option.clone()));
        let given = PermissionAnswer { request_id: request_id.clone(), reply };
        let failovers = cluster.failovers.get();
        let told = ask(&life, life.service.answer(agent, given)).await;
        let is_lost_since = failovers != cluster.failovers.get();
        if !matches!(told, Some(Ok(AnswerOutcome::Settled))) || is_lost_since {
            continue;
        }
        let home = cluster.disk.saved_agent(agent).and_then(|agent| agent.home);
        cluster.reach(if home == life.place().map(super::Place::node) {
            "an answer settled a question at home"
        } else {
            "an answer settled a question of another node"
        });
        life.world.sync(agent);
        let saved =
            life.world.lock().ledgers.get(&agent).and_then(|it| it.questions.get(&request_id).cloned());
        let is_purged = cluster.disk.saved_agent(agent).is_none();
        if saved != Some(QuestionSoFar::Settled(Some(option.clone()))) && !is_purged {
            cluster.fail(format!("Q1: {option} is told to have settled {request_id}, and it is {saved:?}"));
        }
    }
}

/// An operator who removes a node that never comes back.
pub(super) async fn forget(cluster: &Cluster) {
    let mut dice = cluster.dice("operator");
    if dice.chance(500) {
        return;
    }
    loop {
        sleep(Duration::from_secs(5)).await;
        let gone = cluster.nodes.iter().find(|node| node.is_gone());
        let Some((gone, life)) = gone.zip(any(cluster, &mut dice)) else { continue };
        if let Some(Ok(())) = ask(&life, life.service.forget_node(gone.id)).await {
            cluster.reach("a node was removed");
            return;
        }
    }
}
