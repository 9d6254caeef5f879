//! Deterministic simulation: the real application, parser, framer and dialect over a simulated world, in one thread,
//! in virtual time, with every choice drawn from one seed. The same seed goes the same way.
//!
//! Read in this order:
//!
//! 1. [`simulation`]: one simulation: lives of the server, one after the other;
//! 2. [`faults`]: what the swarm draws for a seed: which faults exist, and how strong they are;
//! 3. [`world`]: time, chance, crashes; [`store`], [`runner`], [`process`], [`questions`], [`script`]: what is behind the ports;
//! 4. [`reader`], [`commander`], [`answerer`], [`view`], [`packed`]: the clients;
//! 5. [`journal`] and [`bounds`]: what is checked after each step; [`ends`] and [`cancels`]: what is checked when
//!    everything has come to its end;
//! 6. [`sweep`]: thousands of fresh seeds, after those that failed once; [`stories`] and [`checklist`]: tests by name;
//!    [`planted`]: the proof that bugs are found; [`planted_outside`]: those of them that are not in the product's code;
//! 7. [`starving`] and `waking`: what no simulated world shows, of the real store and the real watcher.
//!
//! `TOKENRAIL_SEED=<number>` replays one seed and prints the end of its trace; `TOKENRAIL_SEEDS=<count>` says how many
//! fresh ones are tried.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test ends where its own tools fail")]

mod answerer;
mod bounds;
mod cancels;
mod checklist;
mod commander;
mod dice;
mod ends;
mod faults;
mod join;
mod journal;
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
