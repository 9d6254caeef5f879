//! Deterministic simulation: the real application, parser, framer and dialect over a simulated world, in one thread,
//! in virtual time, with every choice drawn from one seed. The same seed always takes the same path.
//!
//! Read in this order:
//!
//! 1. [`simulation`]: one simulation: the server starts, and restarts after each crash or stop, until all has ended;
//! 2. [`faults`]: what the swarm draws for a seed: which faults exist, and how strong they are;
//! 3. [`world`]: time, chance, crashes; [`chance`], [`store`], [`members`], [`runner`], [`process`], [`questions`],
//!    [`script`]: the simulated adapters behind the ports;
//! 4. [`reader`], [`commander`], [`answerer`], [`view`], [`packed`]: the clients;
//! 5. [`journal`] and [`bounds`]: checks after each step; [`ends`] and [`cancels`]: checks after everything has ended;
//! 6. [`sweep`]: first the seeds that failed once, then thousands of fresh ones; [`stories`] and [`checklist`]: tests
//!    by name; [`planted`]: the proof that bugs are found; [`planted_outside`]: the planted bugs outside the
//!    application;
//! 7. [`nodes`]: several servers on one store;
//! 8. [`starving`] and `waking`: tests of the real store and the real watcher, which no simulation covers.
//!
//! `TOKENRAIL_SEED=<number>` replays one seed and prints the end of its trace. `TOKENRAIL_SEEDS=<count>` sets the
//! number of fresh seeds.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test ends where its own tools fail")]

mod answerer;
mod bounds;
mod cancels;
mod chance;
mod checklist;
mod commander;
mod dice;
mod ends;
mod faults;
mod join;
mod journal;
mod members;
mod nodes;
mod outages;
mod packed;
#[cfg(planted_bugs)]
mod planted;
mod planted_outside;
mod process;
mod questions;
mod reader;
mod runner;
mod script;
mod simulation;
mod starving;
mod store;
mod stories;
mod sweep;
mod trace;
mod view;
#[cfg(planted_bugs)]
mod waking;
mod world;
