//! Runs every fuzz target with its corpus, and with a limited number of mutations of it: see
//! `docs/explanation/reliability-tests.md`. An input that fails is saved in the corpus, and is tried first from then
//! on.
//!
//! `TOKENRAIL_FUZZ_SEED` repeats the mutations of a run. `TOKENRAIL_FUZZ_TIMES` multiplies their number.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "where a test cannot go on, it must panic")]
#![expect(clippy::print_stdout, reason = "how many inputs there were is for the reader of the test's output")]

mod corpus;
mod mutation;
mod replay;
mod targets;
