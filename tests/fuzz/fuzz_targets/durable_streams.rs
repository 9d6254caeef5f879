//! Lets libFuzzer call the target `durable_streams`.

#![no_main]

#[path = "../../fuzzing/targets/mod.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::run("durable_streams", data));
