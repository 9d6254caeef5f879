//! Two servers are upgraded one after the other while everybody uses them. The newer program moves a table that every
//! request with an `Idempotency-Key` uses, so an older one needs what the newer one leaves for it.

use std::time::{Duration, Instant};

use tokenrail_test_postgres::Replication;

use super::super::upgrades::{has_older, serve};
use super::cluster::Cluster;
use super::{Load, PATIENCE, say, seed};

const NODES: usize = 2;

/// How many agents guests launch and do with, before, between and after the upgrades.
const VISITS: usize = 15;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_are_upgraded_one_after_the_other_while_everybody_uses_them() {
    let (seed, started) = (seed(), Instant::now());
    say(started, &format!("TOKENRAIL_TEST_STORM_SEED={seed}"));
    let mut cluster = Cluster::start(started, NODES, (Replication::Synchronous, None), None);
    let load = Load::begin(&cluster, seed, None).await;
    cluster.until_visited(VISITS).await;
    for number in 0..NODES {
        assert!(has_older(cluster.database()), "an older server needs it");
        cluster.replace(number, |server| serve(server, true)).await;
        cluster.until_visited(VISITS).await;
    }
    let upgraded = Instant::now();
    while has_older(cluster.database()) {
        assert!(upgraded.elapsed() < PATIENCE, "nobody needs it any more");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    load.ends_well(&cluster, started).await;
}
