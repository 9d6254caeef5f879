//! The delay of one agent's deltas while another agent takes all resources it can get. As [`crate::latency`], with
//! harmful agents that are launched one after the other, each when the one before it has ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::http::Place;
use crate::latency::delays_of;
use crate::report::{Report, Table};
use crate::server::{Durability, Server};
use crate::{Failure, Plan};

/// The second one keeps two cores almost busy, even without neighbours.
const FOLLOWERS: [u64; 2] = [10, 100];
const LIMITS: &str =
    "[limits]\nagent_memory_bytes = 134217728\nspool_bytes = 67108864\nlaunches_per_minute = 100000\n";
/// More than either limit.
const TOO_MUCH_MIB: u64 = 512;
/// An agent that no limit has ended after this time is cancelled.
const CANCELLED_AFTER: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(50);

const NOBODY: &str = "nobody";
/// The harmful agents.
pub(crate) const HARMFUL: [&str; 7] = [
    "a fork bomb",
    "chains of processes",
    "a crowd of processes",
    "a memory hog",
    "a descriptor hog",
    "a disk hog",
    "a flood of output",
];

fn script(harmful: &str) -> Value {
    match harmful {
        "a fork bomb" => json!({ "mode": "fork_bomb" }),
        "chains of processes" => json!({ "mode": "hoppers" }),
        "a crowd of processes" => json!({ "mode": "many_processes" }),
        "a memory hog" => json!({ "mode": "memory", "mib": TOO_MUCH_MIB }),
        "a descriptor hog" => json!({ "mode": "descriptors", "deltas": 10 }),
        "a disk hog" => json!({ "mode": "disk", "mib": TOO_MUCH_MIB, "deltas": 10 }),
        _ => json!({ "mode": "flood", "mib": TOO_MUCH_MIB }),
    }
}

/// The harmful agents whose name contains a word of this list.
pub(crate) fn named(list: &str) -> Result<Vec<String>, Failure> {
    let words: Vec<&str> = list.split(',').collect();
    let is_named = |name: &str, word: &str| name.split(' ').any(|part| part == word);
    if let Some(word) = words.iter().find(|word| !HARMFUL.iter().any(|name| is_named(name, word))) {
        return Err(format!("--beside {word}: words of {}", HARMFUL.join(", ")).into());
    }
    let wanted = HARMFUL.into_iter().filter(|name| words.iter().any(|word| is_named(name, word)));
    Ok(wanted.map(str::to_owned).collect())
}

pub(crate) async fn measure(plan: &Plan, report: &mut Report) -> Result<(), Failure> {
    let columns = ["beside", "followers", "launched", "p50 ms", "p99 ms", "p99.9 ms", "max ms"];
    let table = Table::begin("neighbours: latency beside an agent that takes too much", &columns);
    for followers in FOLLOWERS {
        let is_wanted = |name: &&str| {
            plan.beside.as_ref().is_none_or(|beside| beside.iter().any(|wanted| wanted == name))
        };
        for name in [NOBODY].into_iter().chain(HARMFUL.into_iter().filter(is_wanted)) {
            let server = Server::start_with(Durability::Normal, LIMITS)?;
            let begun = (name != NOBODY).then(|| Troublemakers::begin(server.place.clone(), script(name)));
            let delays = delays_of(&server, plan.scale, followers).await?;
            let launched = match begun {
                Some(troublemakers) => troublemakers.end().await?,
                None => 0,
            };
            let [middle, p99, p999, most] = delays.row();
            let (readers, launched) = (followers.to_string(), launched.to_string());
            table.row(&[name.to_owned(), readers, launched, middle, p99, p999, most]);
            report.keep(format!("beside {name}, {followers}"), delays.at(0.99));
        }
    }
    Ok(())
}

/// Harmful agents, one after the other.
struct Troublemakers {
    enough: Arc<AtomicBool>,
    launching: JoinSet<Result<u64, Failure>>,
}

impl Troublemakers {
    fn begin(place: Place, script: Value) -> Self {
        let enough = Arc::new(AtomicBool::new(false));
        let mut launching = JoinSet::new();
        launching.spawn(launch_until(place, script, Arc::clone(&enough)));
        Self { enough, launching }
    }

    /// Waits until none is left. Returns how many there were.
    async fn end(mut self) -> Result<u64, Failure> {
        self.enough.store(true, Ordering::Relaxed);
        self.launching.join_next().await.ok_or("nobody launched")??
    }
}

async fn launch_until(place: Place, script: Value, enough: Arc<AtomicBool>) -> Result<u64, Failure> {
    let order = json!({ "type": "fake", "prompt": script.to_string() });
    let mut launched = 0;
    while !enough.load(Ordering::Relaxed) {
        let agent = place.post("/api/agents", &order).await?;
        let path = format!("/api/agents/{}", agent["agentId"].as_str().ok_or("an agent without an id")?);
        launched += 1;
        let begun = Instant::now();
        let mut is_cancelled = false;
        while matches!(place.get(&path).await?["status"].as_str(), Some("initializing" | "running")) {
            if !is_cancelled && CANCELLED_AFTER < begun.elapsed() {
                is_cancelled = true;
                place.post(&format!("{path}/cancel"), &json!({})).await?;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
    Ok(launched)
}
