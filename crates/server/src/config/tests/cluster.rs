//! `[cluster]`.

use std::time::Duration;

use tokenrail_application::AtStop;

use super::*;

const URL: &str = "[storage]\nurl = \"postgres://me@db/tokenrail\"\n";

fn wrong(cluster: &str) -> String {
    load(Some(&format!("{URL}[cluster]\n{cluster}\n")), &[]).unwrap_err().to_string()
}

#[test]
fn a_server_has_a_name_even_if_it_is_alone() {
    let config = load(None, &[]).unwrap();
    assert!(!config.cluster.name.is_empty());
    assert!(!config.to_table().contains_key("cluster"), "it cannot be set");
    assert_eq!(crate::compose::limits::all_limits(&config), tokenrail_application::Limits::default());
}

#[test]
fn the_settings_of_the_cluster_reach_the_application_and_can_be_read_again() {
    let file = format!("{URL}[cluster]\nname = \"node-a\"\nbeat_s = 2\nlost_after_s = 8\naway_s = 60\n");
    let file = format!("{file}on_stop = \"leave\"\nfailover_keep_s = 9\nfailover_keep_bytes = 1000\n");
    let config = load(Some(&file), &[("TOKENRAIL_CLUSTER_NAME", "node-b")]).unwrap();
    assert_eq!(config.cluster.name, "node-b");
    let nodes = crate::compose::limits::all_limits(&config).nodes;
    assert_eq!((config.cluster.failover_keep_s, config.cluster.failover_keep_bytes), (9, 1000));
    let at_stop = |told| config.cluster.on_stop.at_stop(told);
    assert_eq!([at_stop(false), at_stop(true)], [AtStop::Leave; 2]);
    let times = [nodes.beat, nodes.lost_after, nodes.away];
    assert_eq!(times, [2, 8, 60].map(Duration::from_secs));
    let shown = toml::to_string(&config.to_table()).unwrap();
    assert_eq!(load(Some(&shown), &[]).unwrap().cluster, config.cluster);
}

#[test]
fn settings_of_the_cluster_need_a_database_that_can_be_shared() {
    let set = [
        ("name", "\"a\""),
        ("beat_s", "3"),
        ("lost_after_s", "30"),
        ("away_s", "300"),
        ("on_stop", "\"leave\""),
    ];
    for (key, value) in set {
        check_wrong(
            &format!("[cluster]\n{key} = {value}\n"),
            &format!("tokenrail.toml:2: cluster.{key}: only for several servers on one PostgreSQL database"),
        );
    }
}

#[test]
fn a_server_may_miss_some_beats_before_it_is_lost() {
    let lost = wrong("beat_s = 3\nlost_after_s = 11");
    assert!(lost.contains("tokenrail.toml:5: cluster.lost_after_s: ") && lost.ends_with(": 12"), "{lost}");
    let beat = wrong("beat_s = 8");
    assert!(beat.contains("tokenrail.toml:4: cluster.beat_s: ") && beat.ends_with(": 32"), "{beat}");
    assert!(wrong("away_s = 0").contains("cluster.away_s: must be between 1 and"));
    assert!(wrong("failover_keep_s = 0").contains("cluster.failover_keep_s: must be between 1 and"));
    assert!(wrong("failover_keep_bytes = 1125899906842625").contains("failover_keep_bytes: must be at most"));
}

#[test]
fn agents_stay_unless_it_is_said_otherwise() {
    let config = load(Some(URL), &[]).unwrap();
    let at_stop = [false, true].map(|told| config.cluster.on_stop.at_stop(told));
    assert_eq!(at_stop, [AtStop::Keep, AtStop::Cancel]);
    assert!(wrong("on_stop = \"go\"").contains("tokenrail.toml:4"));
}

#[test]
fn the_name_of_a_server_can_be_a_header() {
    for name in ["", "a b", "é", "a\\nb", &"x".repeat(65)] {
        let why = wrong(&format!("name = \"{name}\""));
        assert!(why.contains("cluster.name: must have 1 to 64 characters"), "{name}: {why}");
    }
}
