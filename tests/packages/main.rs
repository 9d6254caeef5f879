//! The packages of `cargo xtask package`, installed as a user installs them.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test ends where its own tools fail")]

#[expect(dead_code, reason = "the user stories use more of it")]
#[path = "../e2e/harness.rs"]
mod harness;

mod packaged;
