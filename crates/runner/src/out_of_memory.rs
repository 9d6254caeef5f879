//! Which processes the kernel ends first if the machine runs out of memory.

use std::fs;

/// The `oom_score_adj` of an agent and of git, at most 1000. The higher it is, the sooner the kernel kills the process
/// if memory runs out.
const OOM_SCORE: i32 = 500;

/// If the machine runs out of memory, the kernel should kill this process rather than the server or any other process.
/// The child processes that it starts later inherit the score. `process` is its folder below `/proc`: `self`, or an id.
pub(crate) fn end_first(process: &str) {
    let score = format!("/proc/{process}/oom_score_adj");
    let inherited = fs::read_to_string(&score).ok().and_then(|score| score.trim().parse::<i32>().ok());
    if inherited.is_some_and(|inherited| inherited < OOM_SCORE) {
        // If this fails, the kernel chooses as usual.
        let _ = fs::write(score, OOM_SCORE.to_string());
    }
}
