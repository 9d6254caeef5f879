//! What every runner promises: [`IAgentRunner`], [`IAgentRun`] and [`IRuns`].
#![expect(clippy::unwrap_used, reason = "a promise that is broken is a test that fails")]

use std::collections::BTreeSet;
use std::sync::Arc;

use tokenrail_domain::{AgentId, Timestamp, TurnNumber};

use crate::{
    Adoption, ExitStatus, IAgentRun, IAgentRunner, IRuns, Line, OutputLine, RunEnd, RunOutput, TurnOrder,
};

/// One thing that the agent under test does.
#[derive(Debug, Clone, Copy)]
pub enum Act {
    /// It prints these lines.
    Prints(&'static [&'static str]),
    /// It waits until [`Stage::open_gate`] is called.
    Waits,
    /// It does nothing more, and does not end.
    Hangs,
    /// It exits with this code.
    Exits(i32),
}

/// A runner under test, and one agent that acts as the promise needs.
pub struct Stage {
    pub runner: Arc<dyn IAgentRunner>,
    pub runs: Arc<dyn IRuns>,
    /// The order of the agent's first turn.
    pub order: TurnOrder,
    /// Lets an agent continue that [waits](Act::Waits).
    pub open_gate: Box<dyn Fn()>,
}

/// Defines one test for each promise. `$fresh` is a function from the acts of an agent to a [`Stage`].
#[macro_export]
macro_rules! runner_contract {
    ($fresh:path) => {
        $crate::runner_contract! { $fresh:
            output_comes_complete_and_in_order
            an_end_says_how_the_agent_exited
            a_wait_that_is_dropped_loses_nothing
            a_cancel_ends_a_run_that_hangs
            a_run_is_adopted_from_its_first_byte
            a_discarded_run_cannot_be_adopted
            a_run_that_never_began_cannot_be_adopted
            a_sweep_spares_what_will_be_adopted
            a_swept_run_cannot_be_adopted
            an_ended_run_cannot_be_adopted
            a_forgotten_agent_has_no_runs
        }
    };
    ($fresh:path: $($promise:ident)*) => {
        $(
            #[tokio::test]
            async fn $promise() {
                $crate::testing::runner_contract::$promise(|acts| $fresh(acts)).await;
            }
        )*
    };
}

const ONE_AND_HANGS: &[Act] = &[Act::Prints(&["one"]), Act::Hangs];

pub async fn output_comes_complete_and_in_order(fresh: impl Fn(&[Act]) -> Stage) {
    let stage = fresh(&[Act::Prints(&["one", "", "three"]), Act::Prints(&["four"]), Act::Exits(0)]);
    let mut run = stage.runner.start(&stage.order).await.unwrap();
    let (lines, _) = rest(&mut run).await;
    let lines: Vec<_> = lines.iter().map(|line| (text(line), line.end_offset)).collect();
    assert_eq!(lines, [("one", 4), ("", 5), ("three", 11), ("four", 16)].map(|(text, at)| (text.into(), at)));
}

pub async fn an_end_says_how_the_agent_exited(fresh: impl Fn(&[Act]) -> Stage) {
    for code in [0, 3] {
        let stage = fresh(&[Act::Prints(&["one"]), Act::Exits(code)]);
        let mut run = stage.runner.start(&stage.order).await.unwrap();
        assert_eq!(rest(&mut run).await.1.status, ExitStatus::Code(code));
    }
}

pub async fn a_wait_that_is_dropped_loses_nothing(fresh: impl Fn(&[Act]) -> Stage) {
    let stage = fresh(&[Act::Prints(&["one"]), Act::Waits, Act::Prints(&["two"]), Act::Exits(0)]);
    let mut run = stage.runner.start(&stage.order).await.unwrap();
    assert_eq!(first(&mut run).await, ["one"]);
    tokio::select! {
        biased;
        output = run.next() => panic!("the agent waits, and gave {output:?}"),
        () = tokio::task::yield_now() => {}
    }
    (stage.open_gate)();
    assert_eq!(texts(&rest(&mut run).await.0), ["two"]);
}

pub async fn a_cancel_ends_a_run_that_hangs(fresh: impl Fn(&[Act]) -> Stage) {
    let stage = fresh(ONE_AND_HANGS);
    let mut run = stage.runner.start(&stage.order).await.unwrap();
    assert_eq!(first(&mut run).await, ["one"]);
    run.cancel().await.unwrap();
    // A second cancel has no effect.
    run.cancel().await.unwrap();
    let (lines, end) = rest(&mut run).await;
    assert_eq!((lines.len(), end.status), (0, ExitStatus::Signal(15)));
}

pub async fn a_run_is_adopted_from_its_first_byte(fresh: impl Fn(&[Act]) -> Stage) {
    let stage = fresh(&[Act::Prints(&["one"]), Act::Waits, Act::Prints(&["two"]), Act::Exits(0)]);
    read_one(&stage).await;
    let mut run = adopted(&stage).await.unwrap();
    assert_eq!(first(&mut run).await, ["one"]);
    (stage.open_gate)();
    let (lines, end) = rest(&mut run).await;
    assert_eq!((texts(&lines), end.status), (vec!["two".to_owned()], ExitStatus::Code(0)));
}

pub async fn a_discarded_run_cannot_be_adopted(fresh: impl Fn(&[Act]) -> Stage) {
    let stage = fresh(&[Act::Prints(&["one"]), Act::Exits(0)]);
    let mut run = stage.runner.start(&stage.order).await.unwrap();
    rest(&mut run).await;
    run.leave().await;
    assert!(adopted(&stage).await.is_none());
}

pub async fn a_run_that_never_began_cannot_be_adopted(fresh: impl Fn(&[Act]) -> Stage) {
    let stage = fresh(ONE_AND_HANGS);
    assert!(adopted(&stage).await.is_none());
    let TurnOrder { agent, run, .. } = stage.order;
    stage.runs.end(agent, run).await.unwrap();
    stage.runs.forget(agent).await.unwrap();
    assert_eq!(stage.runs.sweep(&BTreeSet::new()).await.unwrap(), 0);
}

pub async fn a_sweep_spares_what_will_be_adopted(fresh: impl Fn(&[Act]) -> Stage) {
    let stage = fresh(ONE_AND_HANGS);
    read_one(&stage).await;
    let TurnOrder { agent, run, .. } = stage.order;
    assert_eq!(stage.runs.sweep(&BTreeSet::from([(agent, run)])).await.unwrap(), 0);
    let mut run = adopted(&stage).await.unwrap();
    assert_eq!(first(&mut run).await, ["one"]);
    run.cancel().await.unwrap();
    rest(&mut run).await;
}

pub async fn a_swept_run_cannot_be_adopted(fresh: impl Fn(&[Act]) -> Stage) {
    let stage = fresh(ONE_AND_HANGS);
    read_one(&stage).await;
    let other_turn = (stage.order.agent, TurnNumber(2));
    assert_eq!(stage.runs.sweep(&BTreeSet::from([other_turn])).await.unwrap(), 1);
    assert!(adopted(&stage).await.is_none());
    assert_eq!(stage.runs.sweep(&BTreeSet::new()).await.unwrap(), 0);
}

pub async fn an_ended_run_cannot_be_adopted(fresh: impl Fn(&[Act]) -> Stage) {
    let stage = fresh(ONE_AND_HANGS);
    read_one(&stage).await;
    let TurnOrder { agent, run, .. } = stage.order;
    stage.runs.end(agent, run).await.unwrap();
    assert!(adopted(&stage).await.is_none());
}

pub async fn a_forgotten_agent_has_no_runs(fresh: impl Fn(&[Act]) -> Stage) {
    let stage = fresh(ONE_AND_HANGS);
    read_one(&stage).await;
    stage.runs.forget(AgentId::new(Timestamp(2), [2; 10])).await.unwrap();
    let adopted_run = adopted(&stage).await;
    assert!(adopted_run.is_some(), "another agent was forgotten");
    drop(adopted_run);
    stage.runs.forget(stage.order.agent).await.unwrap();
    assert!(adopted(&stage).await.is_none());
}

/// Starts the agent, reads its first line and drops the reader, as if the server was restarted.
async fn read_one(stage: &Stage) {
    let mut run = stage.runner.start(&stage.order).await.unwrap();
    assert_eq!(first(&mut run).await, ["one"]);
}

async fn adopted(stage: &Stage) -> Option<Box<dyn IAgentRun>> {
    match stage.runner.adopt(&stage.order, 0).await.unwrap() {
        Adoption::Run(run) => Some(run),
        Adoption::Gone => None,
    }
}

async fn first(run: &mut Box<dyn IAgentRun>) -> Vec<String> {
    loop {
        match run.next().await.unwrap() {
            RunOutput::Lines(lines) => return texts(&lines),
            RunOutput::Progress { .. } => {}
            RunOutput::Ended(end) => panic!("the run ended: {end:?}"),
        }
    }
}

/// Reads the run to its end.
pub async fn rest(run: &mut Box<dyn IAgentRun>) -> (Vec<OutputLine>, RunEnd) {
    let mut lines = Vec::new();
    loop {
        match run.next().await.unwrap() {
            RunOutput::Lines(more) => lines.extend(more),
            RunOutput::Progress { .. } => {}
            RunOutput::Ended(end) => return (lines, end),
        }
    }
}

fn texts(lines: &[OutputLine]) -> Vec<String> {
    lines.iter().map(text).collect()
}

fn text(line: &OutputLine) -> String {
    match &line.line {
        Line::Whole(text) => String::from_utf8_lossy(text).into_owned(),
        other => panic!("not a whole line: {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Notify;

    use super::*;
    use crate::testing::samples::turn_order;
    use crate::testing::{ScriptedRunner, Step};

    fn scripted(acts: &[Act]) -> Stage {
        let gate = Arc::new(Notify::new());
        let step = |act: &Act| match *act {
            Act::Prints(lines) => Step::Lines(lines.iter().map(|line| (*line).to_owned()).collect()),
            Act::Waits => Step::Gate(Arc::clone(&gate)),
            Act::Hangs => Step::Hang,
            Act::Exits(code) => Step::End(RunEnd { status: ExitStatus::Code(code), ..RunEnd::default() }),
        };
        let runner = Arc::new(ScriptedRunner::new([acts.iter().map(step).collect()]));
        let runs = runner.clone();
        Stage { runner, runs, order: turn_order("hello"), open_gate: Box::new(move || gate.notify_one()) }
    }

    runner_contract!(scripted);
}
