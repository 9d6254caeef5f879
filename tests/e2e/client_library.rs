//! Our client library with several servers behind a proxy: it loses its server again and again, and goes on at another
//! one with its cursor.

use crate::postgres::storm::{self, Followers};

/// How many faults its storm has.
const FAULTS: u64 = 50;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_misses_and_repeats_nothing_in_a_storm() {
    storm::passes(FAULTS, Followers::Library).await;
}
