//! Tokenrail seen from outside, one file per user story: the real binary, real files, real processes.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test ends where its own tools fail")]

mod acp_agent;
mod bad_input;
mod browser;
mod cancel_an_agent;
mod command_line;
mod copies;
mod database;
mod dialects;
mod follow_an_agent;
mod follower;
mod full_disk;
mod harness;
mod hostile_output;
mod hostile_repository;
mod kelpie_and_letta;
mod many_followers;
mod misbehaving_agents;
mod model_server;
mod own_program;
mod promises;
mod proxy;
mod questions;
mod real_acp;
mod real_agents;
mod real_claude_agent;
mod real_claude_two_way;
mod real_clients;
mod real_codex;
mod real_gemini;
mod real_opencode;
mod real_questions;
mod slow_client;
mod survive_a_crash;
mod turns;
mod which_server;
