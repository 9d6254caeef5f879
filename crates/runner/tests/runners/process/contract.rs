//! The process runner keeps the promises of its port.

use std::fs;
use std::sync::Arc;

use tokenrail_ports::testing::runner_contract::{Act, Stage};

use super::support::Bench;

/// An agent that is a shell script with these acts.
fn processes(acts: &[Act]) -> Stage {
    let line = |act: &Act| match *act {
        Act::Prints(lines) => format!("printf '{}\\n'", lines.join("\\n")),
        Act::Waits => "until [ -e gate ]; do sleep 0.01; done".to_owned(),
        Act::Hangs => "sleep 1000".to_owned(),
        Act::Exits(code) => format!("exit {code}"),
    };
    let lines: Vec<_> = acts.iter().map(line).collect();
    let bench = Bench::new(&lines.join("\n"));
    let (runner, runs, order) = (Arc::new(bench.runner()), Arc::new(bench.runs()), bench.order.clone());
    // The closure owns the bench. When it is dropped, the bench ends what is left of the agent.
    let open_gate = Box::new(move || fs::write(bench.work("gate"), "").unwrap());
    Stage { runner, runs, order, open_gate }
}

tokenrail_ports::runner_contract!(processes);
