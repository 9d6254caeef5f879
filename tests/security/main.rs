//! The security suite: the rows of docs/explanation/security-tests.md, tested from the outside with the real binary.
//!
//! The name of each test contains the number of its row. `in_chromium`, `with_kosoku`, `with_schemathesis`,
//! `with_slowhttptest` and `with_strace` need programs that `cargo xtask test` installs, and are rows of its table.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test ends where its own tools fail")]

mod addresses;
mod advisories;
mod bodies;
mod child;
mod echo;
mod floods;
mod folders;
mod framing;
#[path = "../e2e/harness.rs"]
#[expect(dead_code, reason = "it is shared with the user stories, which use more of it")]
mod harness;
mod hosts_and_origins;
mod in_chromium;
mod page;
mod problem_codes;
mod raw;
mod routes;
mod secrets;
mod sessions;
mod socket;
mod socket_io;
mod started;
mod tls;
mod tokens;
mod upstreams;
mod with_kosoku;
mod with_schemathesis;
mod with_slowhttptest;
mod with_strace;
