//! Lets libFuzzer call the target `agent_parser`.

#![no_main]

#[path = "../../fuzzing/targets/mod.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::run("agent_parser", data));
