//! A client that answers permission requests at random moments: sometimes twice, wrongly or too late.

use std::collections::BTreeMap;
use std::time::Duration;

use tokenrail_application::{AgentService, AnswerOutcome, Refusal};
use tokenrail_domain::{AgentId, PermissionReply};
use tokenrail_ports::PermissionAnswer;
use tokio::time::{Instant, sleep};

use crate::dice::Dice;
use crate::faults::Quirk;
use crate::journal::QuestionSoFar;
use crate::questions::OPTIONS;
use crate::reader::Agents;
use crate::world::World;

/// Answerers for each agent. Two, so that answers can collide.
const PER_AGENT: usize = 2;
/// How often, per mille, the choice includes permission requests that are already settled.
const OLD_TOO: u64 = 50;
/// How much longer than the answer timeout a call may take: it reads the store, which may be slow.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long an agent that is being stopped may still wait for the answer.
const STOPPING: Duration = Duration::from_secs(10);

/// A client that answers permission requests.
pub(crate) struct Answerer {
    slot: usize,
    dice: Dice,
    /// The server start after which each permission request was first seen.
    seen: BTreeMap<String, u32>,
}

impl Answerer {
    pub(crate) fn all(world: &World) -> Vec<Self> {
        let agents = if world.faults.quirks.contains(&Quirk::Asks) { world.faults.slots } else { 0 };
        let one = |number: usize| {
            let dice = Dice::of(world.seed, &format!("answerer {number}"));
            Self { slot: number / PER_AGENT, dice, seen: BTreeMap::new() }
        };
        (0..agents * PER_AGENT).map(one).collect()
    }

    /// Answers forever.
    pub(crate) async fn answer(&mut self, service: &AgentService, world: &World, agents: &Agents) {
        loop {
            sleep(Duration::from_millis(self.dice.pick(&[1, 20, 300, 3000]))).await;
            let Some(agent) = agents.get(self.slot) else { continue };
            let Some(answer) = self.choose(world, agent) else { continue };
            let began = Instant::now();
            let told = service.answer(agent, answer.clone()).await;
            if world.faults.limits.commands.answer_timeout + PATIENCE < began.elapsed() {
                world.fail(format!("Q4: {answer:?} was answered after {:?}: {told:?}", began.elapsed()));
            }
            if matches!(told, Err(Refusal::OptionUnknown { .. })) {
                self.check_known(service, world, agent, &answer.request_id);
            }
            self.check(world, agent, &answer, told).await;
        }
    }

    /// An answer to a permission request of the journal. It is usually still open, and the option is usually valid.
    fn choose(&mut self, world: &World, agent: AgentId) -> Option<PermissionAnswer> {
        let state = world.lock();
        let questions = &state.ledgers.get(&agent)?.questions;
        for question in questions.keys() {
            self.seen.entry(question.clone()).or_insert(state.life);
        }
        let old_too = self.dice.chance(OLD_TOO);
        let asked = questions.iter().filter(|(_, so_far)| old_too || **so_far == QuestionSoFar::Open);
        let among: Vec<&String> = asked.map(|(question, _)| question).collect();
        let question = among.get(self.dice.below(among.len() as u64) as usize)?;
        // Of one from before a crash, `check_known` learns from such an answer that the run knows it again.
        let is_older = self.seen.get(*question).is_some_and(|seen| *seen < state.life);
        let option = match self.dice.below(10) {
            0 => None,
            1 => Some("maybe"),
            2..6 if is_older => Some("maybe"),
            _ => Some(self.dice.pick(&OPTIONS)),
        };
        let reply = PermissionReply::of(option.map(str::to_owned));
        Some(PermissionAnswer { request_id: String::clone(question), reply })
    }

    /// The run knows this permission request. If it was sent before the server was restarted, clients are told so too.
    fn check_known(&self, service: &AgentService, world: &World, agent: AgentId, question: &str) {
        let life = world.lock().life;
        let is_older = self.seen.get(question).is_some_and(|seen| *seen < life);
        if !is_older || !world.asks(agent, question) {
            return;
        }
        world.reach("a question of before a crash is told again");
        if service.needs(agent).open_questions == 0 {
            world.fail(format!("N3: the agent waits for an answer to {question}, and nobody is told"));
        }
    }

    async fn check(
        &self,
        world: &World,
        agent: AgentId,
        answer: &PermissionAnswer,
        told: Result<AnswerOutcome, Refusal>,
    ) {
        let PermissionAnswer { request_id, reply } = answer;
        let option = reply.first_option();
        world.sync(agent);
        let saved =
            world.lock().ledgers.get(&agent).and_then(|ledger| ledger.questions.get(request_id).cloned());
        let life = world.lock().life;
        match told {
            Ok(AnswerOutcome::Settled) => {
                world.reach("an answer settled a question");
                if self.seen.get(request_id).is_some_and(|seen| *seen < life) {
                    world.reach("a question of before a crash was answered");
                }
                if saved != Some(QuestionSoFar::Settled(option.map(str::to_owned))) {
                    world.fail(format!("Q1: {answer:?} is told to have settled it, and it is {saved:?}"));
                }
                let first = world.lock().settled.insert((agent, request_id.clone()));
                if !first {
                    world.fail(format!("Q2: {answer:?} is told to have settled what another one has"));
                }
            }
            Ok(AnswerOutcome::HandedOn) => world.reach("an answer was handed on"),
            Err(Refusal::OptionUnknown { .. }) => {
                world.reach("an answer was not offered");
                if option.is_none_or(|option| OPTIONS.contains(&option)) {
                    world.fail(format!("Q3: {answer:?} is told not to have been offered"));
                }
            }
            Err(Refusal::RequestUnknown(_)) => {
                world.fail(format!("Q3: {answer:?} is told never to have been asked, and it is {saved:?}"));
            }
            Err(Refusal::RequestSettled(_)) => {
                world.reach("an answer came too late");
                if world.asks(agent, request_id) {
                    // The agent may be about to be stopped.
                    sleep(STOPPING).await;
                    if world.asks(agent, request_id) {
                        world.fail(format!("Q3: {answer:?} is told to come too late, and the agent waits"));
                    }
                }
            }
            Err(_) => {}
        }
    }
}
