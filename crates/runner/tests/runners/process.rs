//! Process agents with real processes: shell scripts as agents, and the supervisor of `examples/supervise.rs`.

mod adoption;
mod contract;
mod ends;
mod idle;
mod idle_acp;
mod launch;
mod leftovers;
mod limits;
mod output;
mod support;
