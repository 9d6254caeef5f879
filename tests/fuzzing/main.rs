//! Every target of the fuzzing with its corpus, and with a bounded number of mutations of it: see
//! `docs/explanation/reliability-tests.md`. An input that fails is kept in the corpus, and is tried first from then on.
//!
//! `TOKENRAIL_FUZZ_SEED` repeats the mutations of a run; `TOKENRAIL_FUZZ_TIMES` makes as many times more of them.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "where a test cannot go on, it must panic")]
#![expect(clippy::print_stdout, reason = "how many inputs there were is for the reader of the test's output")]

mod corpus;
mod mutation;
mod replay;
mod targets;
