//! Lets libFuzzer call the target `ws_client_frame`.

#![no_main]

#[path = "../../fuzzing/targets/mod.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::run("ws_client_frame", data));
