//! Lets libFuzzer call the target `ag_ui_answers`.

#![no_main]

#[path = "../../fuzzing/targets/mod.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::run("ag_ui_answers", data));
