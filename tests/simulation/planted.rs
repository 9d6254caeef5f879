//! The proof that the simulation finds bugs: each planted bug within a limited number of seeds.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokenrail_ports::planted::{Bug, plant};

use crate::nodes;
use crate::simulation::simulate;
use crate::starving::nobody_is_starved;
use crate::waking::each_run_is_woken;

/// A test in which a bug is searched for.
struct Ground {
    violation: fn(u64) -> Option<String>,
    seeds: u64,
    /// Seeds that must pass without a bug. Otherwise catching one proves nothing.
    healthy: u64,
}

const SIMULATION: Ground =
    Ground { violation: |seed| simulate(seed, false).violation, seeds: 2000, healthy: 300 };
const NODES: Ground =
    Ground { violation: |seed| nodes::simulate(seed, false).violation, seeds: 2000, healthy: 100 };
const WATCHER: Ground = Ground { violation: each_run_is_woken, seeds: 50, healthy: 50 };
const STORE: Ground = Ground { violation: nobody_is_starved, seeds: 50, healthy: 50 };

#[test]
fn each_planted_bug_is_found() {
    let bugs: Vec<Option<Bug>> = std::iter::once(None).chain(Bug::ALL.map(Some)).collect();
    let (next, caught) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some(bug) = bugs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = hunt(*bug);
                    caught.lock().unwrap().insert(format!("{bug:?}"), found);
                }
            });
        }
    });
    let caught = caught.into_inner().unwrap();
    println!("{:<32} | seeds | what was seen", "planted bug");
    for (bug, found) in &caught {
        match found {
            Some((seed, how)) => {
                println!("{bug:<32} | {:>5} | {}", seed + 1, how.lines().next().unwrap_or(""))
            }
            None => println!("{bug:<32} |  none |"),
        }
    }
    let missed: Vec<_> = caught.iter().filter(|(bug, found)| found.is_some() == (**bug == "None")).collect();
    assert!(missed.is_empty(), "{missed:?}");
}

/// The first seed that fails with the bug. A bug must be found on each of its grounds; the worst counts. Without a bug,
/// all grounds are searched.
fn hunt(bug: Option<Bug>) -> Option<(u64, String)> {
    let grounds: &[Ground] = match bug {
        Some(Bug::OneOfAPassIsWoken) => &[WATCHER],
        Some(Bug::FloodGoesFirst) => &[STORE],
        Some(Bug::FenceIgnored) => &[SIMULATION, NODES],
        Some(
            Bug::KeyPerNode
            | Bug::HintIsTruth
            | Bug::PollOff
            | Bug::MissedIgnored
            | Bug::TakeoverWithoutEpoch
            | Bug::LostByOneRead
            | Bug::GatherSkips
            | Bug::EndTwice
            | Bug::PromptTwice
            | Bug::AnswerLostBetweenNodes
            | Bug::NodeStartsOutOfTouch
            | Bug::ShownNumbersReused
            | Bug::WaitingTurnEndsWithNode
            | Bug::LeftoversForgotten
            | Bug::PurgeUntoldElsewhere
            | Bug::PurgeWaitsForLostNode,
        ) => &[NODES],
        Some(_) => &[SIMULATION],
        None => &[SIMULATION, NODES, WATCHER, STORE],
    };
    plant(bug);
    let found = grounds.iter().map(|ground| {
        let seeds = if bug.is_some() { ground.seeds } else { ground.healthy };
        (0..seeds).find_map(|seed| (ground.violation)(seed).map(|how| (seed, how)))
    });
    let found: Vec<_> = found.collect();
    plant(None);
    let worst = found.iter().flatten().max_by_key(|(seed, _)| *seed).cloned();
    worst.filter(|_| bug.is_none() || found.iter().all(Option::is_some))
}
