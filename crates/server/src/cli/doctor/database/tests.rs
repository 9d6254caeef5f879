//! What is said of a database that is as few real ones are.

use std::time::Duration;

use tokenrail_domain::NodeId;
use tokenrail_persistence::{PostgresHealth, PostgresTimes, ReplicationSlots, SeenNode, Survives};
use tokenrail_ports::{Node, NodeState, Pulse};

use super::{DoctorCheck, Verdict, durability, health, settings};
use crate::config::DurabilityMode;

fn times(commit_ms: u64, hint_ms: Option<u64>) -> PostgresTimes {
    let ms = Duration::from_millis;
    PostgresTimes { round_trip: ms(1), commit: ms(commit_ms), hint: hint_ms.map(ms) }
}

fn well() -> PostgresHealth {
    PostgresHealth {
        times: times(2, Some(3)),
        oldest_snapshot: 10,
        oldest_xid: 3_000_000,
        slots: ReplicationSlots { count: 0, inactive: 0, kept_bytes: 0 },
        listen_fixed_in: None,
    }
}

/// The findings that are not good.
fn problems(findings: impl IntoIterator<Item = DoctorCheck>) -> Vec<(String, Verdict, String)> {
    let problems = findings.into_iter().filter(|finding| finding.verdict != Verdict::Good);
    problems.map(|DoctorCheck { name, verdict, text }| (name, verdict, text)).collect()
}

#[track_caller]
fn only(problems: &[(String, Verdict, String)], name: &str, verdict: Verdict, words: &[&str]) {
    let [(its_name, its_verdict, text)] = problems else { panic!("{problems:?}") };
    assert_eq!((its_name.as_str(), *its_verdict), (name, verdict), "{text}");
    for word in words {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn a_database_that_is_well_needs_nothing() {
    let findings = health::findings(&well(), "17.2");
    let said: Vec<_> = findings.iter().map(|it| (it.name.as_str(), it.text.as_str())).collect();
    assert_eq!(
        said,
        [
            ("database latency", "round trip 1.0 ms, commit 2.0 ms, hint between nodes 3.0 ms"),
            ("oldest snapshot", "10 transactions old"),
            (
                "oldest transaction id",
                "3 million transactions old; PostgreSQL accepts up to about 2,100 million"
            ),
        ]
    );
    assert!(problems(findings).is_empty());
    assert!(problems(settings(true, true, true)).is_empty());
}

#[test]
fn each_thing_that_is_wrong_is_named_with_what_to_do() {
    let warning = Verdict::Warning;
    let slots = |count, inactive, kept_bytes| PostgresHealth {
        slots: ReplicationSlots { count, inactive, kept_bytes },
        ..well()
    };
    let cases: [(PostgresHealth, &str, Verdict, &[&str]); 7] = [
        (
            PostgresHealth { times: times(101, Some(3)), ..well() },
            "database latency",
            warning,
            &["commit 101.0 ms", "every token is late", "check the disk"],
        ),
        (
            PostgresHealth { times: times(2, None), ..well() },
            "database latency",
            warning,
            &["a hint (NOTIFY) did not arrive", "up to 1.5 s late"],
        ),
        (
            PostgresHealth { oldest_snapshot: 1_000_001, ..well() },
            "oldest snapshot",
            warning,
            &["1000001 transactions old", "end it (pg_stat_activity shows it)"],
        ),
        (
            PostgresHealth { oldest_xid: 1_000_000_001, ..well() },
            "oldest transaction id",
            Verdict::Bad,
            &["1000 million transactions old", "let autovacuum finish"],
        ),
        (slots(2, 1, 5 << 20), "replication slots", warning, &["2, unused: 1", "keep 5 MiB", "drop those"]),
        (slots(1, 0, (1 << 30) + 1), "replication slots", warning, &["1, unused: 0", "keep 1024 MiB"]),
        (
            PostgresHealth { listen_fixed_in: Some("17.8".to_owned()), ..well() },
            "database version",
            warning,
            &["PostgreSQL 17.7 can lose hints", "upgrade it to 17.8 or newer"],
        ),
    ];
    for (found, name, verdict, words) in cases {
        only(&problems(health::findings(&found, "17.7")), name, verdict, words);
    }
}

#[test]
fn settings_that_lose_data_are_errors_and_missing_checksums_are_not() {
    let name = "database settings";
    only(&problems(settings(false, true, true)), name, Verdict::Bad, &["set fsync = on"]);
    only(&problems(settings(true, false, true)), name, Verdict::Bad, &["set full_page_writes = on"]);
    only(&problems(settings(true, true, false)), name, Verdict::Warning, &["pg_checksums --enable"]);
}

#[test]
fn what_the_data_survives_is_compared_with_what_was_asked_for() {
    use DurabilityMode::{Auto, Primary, Replicated};
    for (mode, survives, verdict, words) in [
        (Auto, Survives::OneMachine, Verdict::Good, "survives the loss of one machine"),
        (Replicated, Survives::OneMachine, Verdict::Good, "survives the loss of one machine"),
        (Auto, Survives::NoMachine, Verdict::Warning, "there is no synchronous standby"),
        (Primary, Survives::NoMachine, Verdict::Warning, "commits do not wait for a standby"),
        (Replicated, Survives::NoMachine, Verdict::Bad, "set synchronous_standby_names"),
    ] {
        let DoctorCheck { name, verdict: found, text } = durability(mode, survives);
        assert_eq!((name.as_str(), found), ("durability", verdict), "{text}");
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn nodes_that_are_lost_or_hang_are_named() {
    let seen = |state, beats| {
        let pulse = Pulse { incarnation: 1, beat: 1 };
        let (name, version, types) = ("b".to_owned(), "0.1.0".to_owned(), vec!["fake".to_owned()]);
        SeenNode { node: Node { id: NodeId(2), name, version, state, types, pulse }, beats }
    };
    let said = |state, beats| problems([health::node(&seen(state, beats))]);
    assert!(said(NodeState::Alive, true).is_empty());
    for state in [NodeState::Away, NodeState::Gone] {
        assert!(said(state, false).is_empty());
    }
    only(&said(NodeState::Alive, false), "node b", Verdict::Warning, &["it hangs", "restart it"]);
    only(&said(NodeState::Lost, false), "node b", Verdict::Warning, &["tokenrail nodes forget 2"]);
}
