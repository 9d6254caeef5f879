//! Lets libFuzzer call the target `socket_io_upgrade`.

#![no_main]

#[path = "../../fuzzing/targets/mod.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::run("socket_io_upgrade", data));
