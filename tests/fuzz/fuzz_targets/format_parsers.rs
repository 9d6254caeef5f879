//! Lets libFuzzer call the target `format_parsers`.

#![no_main]

#[path = "../../fuzzing/targets/mod.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::run("format_parsers", data));
