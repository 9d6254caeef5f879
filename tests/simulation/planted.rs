//! The proof that the simulation finds bugs: each planted one within so many seeds.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokenrail_ports::planted::{Bug, plant};

use crate::simulation::simulate;

const SEEDS: u64 = 2000;
/// So many seeds must pass without a bug, or catching one proves nothing.
const HEALTHY_SEEDS: u64 = 300;

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

/// The first seed that fails with the bug.
fn hunt(bug: Option<Bug>) -> Option<(u64, String)> {
    plant(bug);
    let seeds = if bug.is_some() { SEEDS } else { HEALTHY_SEEDS };
    let found = (0..seeds).find_map(|seed| simulate(seed, false).violation.map(|how| (seed, how)));
    plant(None);
    found
}
