//! The application over fakes that yield a varying number of times: what a reader sees.

mod changes;
mod children;
mod compaction;
mod conversation;
mod copies;
mod durability;
mod edits;
mod following;
mod harness;
mod history;
mod idle;
mod images;
mod keys;
mod needs;
mod nodes;
mod outage;
mod pacing;
mod panics;
mod permissions;
mod recovery;
mod refusals;
mod sending;
mod turns;
mod unknown;
