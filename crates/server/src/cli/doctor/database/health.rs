//! How a PostgreSQL server is doing, in words.

use std::collections::BTreeSet;
use std::time::Duration;

use tokenrail_persistence::{PostgresHealth, PostgresTimes, ReplicationSlots, SeenNode};
use tokenrail_ports::NodeState;

use super::super::{DoctorCheck, Verdict, finding};

/// From here on, each token is late.
const SLOW_COMMIT: Duration = Duration::from_millis(100);
/// A database without long transactions has far fewer.
const OLD_SNAPSHOT: i64 = 1_000_000;
/// PostgreSQL stops at about twice as many. Autovacuum keeps it below a tenth, if it can.
const OLD_XID: i64 = 1_000_000_000;
const MUCH_LOG: i64 = 1 << 30;

pub(super) fn findings(health: &PostgresHealth, version: &str) -> Vec<DoctorCheck> {
    let PostgresHealth { times: taken, oldest_snapshot, oldest_xid, slots, listen_fixed_in } = health;
    let mut findings = vec![times(*taken), snapshot(*oldest_snapshot), xids(*oldest_xid)];
    findings.extend(replication_slots(*slots));
    if let Some(fixed) = listen_fixed_in {
        let text = format!(
            "PostgreSQL {version} can lose hints between nodes (a bug in LISTEN); upgrade it to {fixed} or newer"
        );
        findings.push(finding("database version", Verdict::Warning, text));
    }
    findings
}

fn times(PostgresTimes { round_trip, commit, hint }: PostgresTimes) -> DoctorCheck {
    let name = "database latency";
    let ms = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1000.0);
    let text = format!("round trip {}, commit {}", ms(round_trip), ms(commit));
    let Some(hint) = hint else {
        let text = format!(
            "{text}; a hint (NOTIFY) did not arrive, so clients of other nodes receive events up to 1.5 s late; read \
             the log of the database server"
        );
        return finding(name, Verdict::Warning, text);
    };
    let text = format!("{text}, hint between nodes {}", ms(hint));
    if SLOW_COMMIT < commit {
        let text =
            format!("{text}; commits are slow, so every token is late; check the disk of the database");
        return finding(name, Verdict::Warning, text);
    }
    finding(name, Verdict::Good, text)
}

fn snapshot(transactions: i64) -> DoctorCheck {
    let name = "oldest snapshot";
    if OLD_SNAPSHOT < transactions {
        let text = format!(
            "{transactions} transactions old: a long transaction keeps PostgreSQL from cleaning up, so the database \
             grows and becomes slower; end it (pg_stat_activity shows it)"
        );
        return finding(name, Verdict::Warning, text);
    }
    finding(name, Verdict::Good, format!("{transactions} transactions old"))
}

fn xids(age: i64) -> DoctorCheck {
    let name = "oldest transaction id";
    let millions = age / 1_000_000;
    if OLD_XID < age {
        let text = format!(
            "{millions} million transactions old; PostgreSQL accepts no more writes at about 2,100 million; let \
             autovacuum finish, and end long transactions"
        );
        return finding(name, Verdict::Bad, text);
    }
    let text = format!("{millions} million transactions old; PostgreSQL accepts up to about 2,100 million");
    finding(name, Verdict::Good, text)
}

fn replication_slots(
    ReplicationSlots { count, inactive, kept_bytes }: ReplicationSlots,
) -> Option<DoctorCheck> {
    let mib = kept_bytes >> 20;
    let text = format!("{count}, unused: {inactive}; all slots together keep {mib} MiB of write-ahead log");
    if 0 < inactive || MUCH_LOG < kept_bytes {
        let text = format!(
            "{text}, and can fill the disk of the database; drop those that nobody needs (pg_replication_slots lists them)"
        );
        return Some(finding("replication slots", Verdict::Warning, text));
    }
    (0 < count).then(|| finding("replication slots", Verdict::Good, text))
}

/// Agents of a type that only some nodes have go on only there.
pub(super) fn agent_types(nodes: &[SeenNode]) -> Option<DoctorCheck> {
    let alive = nodes.iter().map(|seen| &seen.node).filter(|node| node.state == NodeState::Alive);
    let types: BTreeSet<_> = alive.clone().flat_map(|node| &node.types).collect();
    let lacks: Vec<_> = alive
        .filter_map(|node| {
            let lacking: Vec<_> =
                types.iter().filter(|name| !node.types.contains(name)).map(|name| name.as_str()).collect();
            (!lacking.is_empty()).then(|| format!("{} lacks {}", node.name, lacking.join(", ")))
        })
        .collect();
    let text = format!(
        "nodes have different agent types ({}); an agent runs only on nodes that have its type; add the missing \
         types to the configuration of these nodes",
        lacks.join("; ")
    );
    (!lacks.is_empty()).then(|| finding("agent types", Verdict::Warning, text))
}

pub(super) fn node(SeenNode { node, beats }: &SeenNode) -> DoctorCheck {
    let name = format!("node {}", node.name);
    let (state, version) = (node.state.as_str(), &node.version);
    let text = format!("{state}, version {version}");
    match (node.state, beats) {
        (NodeState::Alive, true) => finding(&name, Verdict::Good, format!("{text}, beat seen")),
        (NodeState::Alive, false) => {
            let text = format!(
                "{text}, but no beat while this command ran: it hangs, or cannot write to the database; read \
                 its log, or restart it"
            );
            finding(&name, Verdict::Warning, text)
        }
        (NodeState::Lost, _) => {
            let text = format!("{text}; start it again, or remove it: tokenrail nodes forget {}", node.id);
            finding(&name, Verdict::Warning, text)
        }
        (NodeState::Away | NodeState::Gone, _) => finding(&name, Verdict::Good, text),
    }
}
