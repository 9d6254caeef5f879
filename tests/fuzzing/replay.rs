//! The corpus, and mutations of it.

use std::hash::BuildHasher as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use crate::corpus;
use crate::mutation::Mutator;
use crate::targets::{self, TARGETS, Target};

/// A target stops after this many failures.
const FAILURES_MAX: usize = 5;

#[test]
fn every_input_of_the_corpus_passes() {
    let mut failed = Vec::new();
    for target in &TARGETS {
        let inputs = corpus::of(target.name);
        assert!(!inputs.is_empty(), "there is no input for {}", target.name);
        for (name, input) in inputs {
            if fails(target, &input) {
                failed.push(format!("{}/{name}", target.name));
            }
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}

/// Runs a target with mutations of its corpus.
fn fuzz(name: &str, inputs: u64) {
    let target = TARGETS.iter().find(|target| target.name == name).unwrap();
    let number = |variable: &str| std::env::var(variable).ok().map(|text| text.parse::<u64>().unwrap());
    let inputs = inputs * number("TOKENRAIL_FUZZ_TIMES").unwrap_or(1);
    let fresh = || std::hash::RandomState::new().hash_one(name) >> 16;
    let seed = number("TOKENRAIL_FUZZ_SEED").unwrap_or_else(fresh);
    let corpus: Vec<_> = corpus::of(name).into_iter().map(|(_, input)| input).collect();
    let words = target.words.concat();
    let (mut mutator, mut input) = (Mutator::new(seed), Vec::new());
    let (began, mut failed) = (Instant::now(), Vec::new());
    for _ in 0..inputs {
        mutator.input(&corpus, &words, &mut input);
        if fails(target, &input) {
            failed.push(corpus::keep(name, &smaller(target, &input)));
            if FAILURES_MAX <= failed.len() {
                break;
            }
        }
    }
    println!("{name}: {inputs} inputs in {:.1} s, seed {seed}", began.elapsed().as_secs_f64());
    assert!(failed.is_empty(), "{name}, seed {seed}: {failed:?} are kept in the corpus");
}

fn fails(target: &Target, input: &[u8]) -> bool {
    catch_unwind(AssertUnwindSafe(|| targets::run(target.name, input))).is_err()
}

/// Removes the parts of an input that the failure does not need.
fn smaller(target: &Target, input: &[u8]) -> Vec<u8> {
    let mut small = input.to_vec();
    let mut piece = small.len() / 2;
    let mut tries = 400;
    while 0 < piece && 0 < tries {
        let mut at = 0;
        while at < small.len() && 0 < tries {
            let mut candidate = small.clone();
            drop(candidate.drain(at..(at + piece).min(small.len())));
            tries -= 1;
            if fails(target, &candidate) {
                small = candidate;
            } else {
                at += piece;
            }
        }
        piece /= 2;
    }
    small
}

macro_rules! fuzz {
    ($($test:ident: $target:literal, $inputs:literal;)*) => {
        $(#[test]
        fn $test() {
            fuzz($target, $inputs);
        })*

        #[test]
        fn no_target_is_left_out() {
            let fuzzed = [$($target),*];
            assert!(TARGETS.iter().map(|target| target.name).eq(fuzzed));
            let all: u64 = [$($inputs),*].into_iter().sum();
            assert!(2_000_000 <= all, "{all} inputs");
        }
    };
}

fuzz! {
    bad_output_is_cut_into_the_same_lines: "line_framer", 600_000;
    bad_event_streams_are_read_as_the_standard_says: "sse_decoder", 600_000;
    bad_lines_of_agents_keep_the_rules_of_messages: "agent_parser", 150_000;
    bad_lines_of_any_format_keep_the_rules_of_messages: "format_parsers", 60_000;
    bad_deltas_lose_no_text: "message_assembler", 300_000;
    bad_batches_are_refused: "packed_batch", 300_000;
    bad_configurations_are_refused_with_their_place: "config", 40_000;
    bad_cursors_are_refused: "cursor", 10_000;
    bad_requests_are_refused: "request", 20_000;
    bad_output_is_told_as_it_was_recorded: "event_stream", 5_000;
    bad_packets_are_answered_or_end_their_session: "socket_io", 5_000;
    bad_upgrades_to_a_websocket_are_refused_or_end_their_session: "socket_io_upgrade", 1_000;
    bad_requests_of_openais_clients_are_refused: "openai", 5_000;
    bad_runs_of_ag_ui_are_refused: "ag_ui", 5_000;
    bad_answers_of_ag_ui_are_refused: "ag_ui_answers", 5_000;
    bad_reads_of_durable_streams_are_refused: "durable_streams", 10_000;
    bad_messages_of_mcp_are_answered: "mcp", 10_000;
    bad_frames_are_answered_or_closed: "ws_client_frame", 5_000;
}
