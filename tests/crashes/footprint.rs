//! The resources of a server. They must be released after all clients have disconnected.

use std::fs;
use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use tokio::time::Instant;

use crate::client::{Client, finished};
use crate::follower::Way;
use crate::harness::TestServer;
use crate::memory::{memory_kib, status};

/// How long the release may take. Threads for blocking work end 10 s after they were last used.
const PATIENCE: Duration = Duration::from_mins(1);
/// What the allocator may keep after the first time: its pools, and the buffers for the next connections.
const FIRST_MORE_KIB: u64 = 24 << 10;
/// What it may keep after later times, for which the first has made room. A thousand idle connections hold less, but
/// each leaked one holds a descriptor, a task and a stream too.
const AGAIN_MORE_KIB: u64 = 8 << 10;
/// The maximum number of repetitions. A leak grows each time. The allocator grows once, though not always at the first
/// time: this depends on the order of the last frees.
const TIMES: u32 = 5;
/// Descriptors that come and go: those of the database's readers, and of the request that reads the metrics.
const DESCRIPTORS_MORE: u64 = 8;
const THREADS_MORE: u64 = 4;
const TASKS_MORE: u64 = 2;

/// The resources of one process, and those that it reports.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Footprint {
    pub(crate) memory_kib: u64,
    descriptors: u64,
    threads: u64,
    tasks: u64,
    /// Open streams, followers, and agents that run or wait.
    busy: u64,
}

impl Footprint {
    pub(crate) async fn of(server: &TestServer) -> Self {
        let folder = format!("/proc/{}", server.pid());
        let (_, metrics) = Client::of(server).ask(Method::GET, "/metrics", None, "").await;
        let gauge = |name: &str| {
            let line = metrics.lines().find_map(|line| line.strip_prefix(&format!("tokenrail_{name} ")));
            line.expect("a gauge").parse::<u64>().expect("a number")
        };
        Self {
            memory_kib: memory_kib(server),
            descriptors: fs::read_dir(format!("{folder}/fd")).expect("descriptors").count() as u64,
            threads: status(server, "Threads:"),
            tasks: gauge("tasks"),
            busy: gauge("open_streams") + gauge("followers") + gauge("active_agents"),
        }
    }

    /// The footprint of an idle server that has done everything once.
    pub(crate) async fn of_rest(server: &TestServer) -> Self {
        let client = Client::of(server);
        for way in [Way::Sse, Way::WebSocket] {
            let id = client.launch(&json!({ "deltas": 100 }), &format!("{way:?}-before")).await;
            finished(client.follow(&id, way, 1, &server.folder.path().join(&id))).await;
        }
        let started = Instant::now();
        loop {
            let now = Self::of(server).await;
            if now.busy == 0 {
                return now;
            }
            assert!(started.elapsed() < PATIENCE, "it does not come to rest: {now:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    fn is_no_more_than(&self, before: &Self, memory_more_kib: u64) -> bool {
        self.busy == 0
            && self.memory_kib <= before.memory_kib + memory_more_kib
            && self.descriptors <= before.descriptors + DESCRIPTORS_MORE
            && self.threads <= before.threads + THREADS_MORE
            && self.tasks <= before.tasks + TASKS_MORE
    }

    /// Repeats the same load, starting from `self`. After the first time, the server may hold a little more than
    /// before. After one of the next times, it must hold no more than before that time. If it holds more each time, it
    /// leaks.
    pub(crate) async fn comes_back_again_and_again(
        &self,
        server: &TestServer,
        mut what: impl AsyncFnMut(u32),
    ) {
        what(1).await;
        let mut left = vec![self.comes_back(server).await];
        for time in 2..=TIMES {
            what(time).await;
            let last = left[left.len() - 1];
            match last.after(server, AGAIN_MORE_KIB).await {
                Ok(_) => return,
                // Only memory may grow at times.
                Err(now) => assert!(
                    now.is_no_more_than(&last, u64::MAX >> 1),
                    "{now:?} is left; before it was {last:?}"
                ),
            }
            left.push(Self::of(server).await);
        }
        let left: Vec<u64> = left.iter().map(|left| left.memory_kib).collect();
        panic!("each time more is left, in KiB: {left:?}");
    }

    /// Waits until the server holds no more than `self`, except for what is allocated once. Returns what it holds.
    pub(crate) async fn comes_back(&self, server: &TestServer) -> Self {
        self.comes_back_within(server, FIRST_MORE_KIB).await
    }

    /// Waits until the server holds no more than after the first time.
    pub(crate) async fn comes_back_again(&self, server: &TestServer) {
        self.comes_back_within(server, AGAIN_MORE_KIB).await;
    }

    async fn comes_back_within(&self, server: &TestServer, memory_more_kib: u64) -> Self {
        match self.after(server, memory_more_kib).await {
            Ok(now) => now,
            Err(now) => panic!("{now:?} is left; before it was {self:?}"),
        }
    }

    /// Returns the footprint as soon as it is no more than `self`, or as an error if it stays larger.
    async fn after(&self, server: &TestServer, memory_more_kib: u64) -> Result<Self, Self> {
        let started = Instant::now();
        let highest = Self::of(server).await;
        loop {
            let now = Self::of(server).await;
            if now.is_no_more_than(self, memory_more_kib) {
                println!(
                    "before {self:?}\nat end {highest:?}\nafter  {now:?}, {:?} later",
                    started.elapsed()
                );
                return Ok(now);
            }
            if PATIENCE <= started.elapsed() {
                return Err(now);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}
