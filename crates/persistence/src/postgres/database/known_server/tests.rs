use super::*;

fn on(timeline: u32) -> ServerIdentity {
    ServerIdentity { system: 7, timeline }
}

#[test]
fn a_failover_is_counted_once_and_never_undone() {
    let known = KnownServer::new(None);
    assert_eq!((known.timeline(), known.failovers()), (UNKNOWN_TIMELINE, 0));
    known.admit(on(3)).unwrap();
    known.admit(on(3)).unwrap();
    assert_eq!((known.timeline(), known.failovers()), (3, 0));
    known.admit(on(5)).unwrap();
    known.admit(on(5)).unwrap();
    assert_eq!((known.timeline(), known.failovers()), (5, 1));
    let former = known.admit(on(3)).unwrap_err();
    assert!(matches!(former, WrongServer::Former { found: 3, known: 5, .. }), "{former:?}");
    let another = known.admit(ServerIdentity { system: 8, timeline: 9 }).unwrap_err();
    assert_eq!(another, WrongServer::Another { found: 8, known: 7 });
    assert_eq!((known.timeline(), known.failovers()), (5, 1));
}

#[test]
fn a_failover_during_a_restart_is_noticed_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("server");
    std::fs::write(&file, "7 1\n").unwrap();
    let known = KnownServer::new(Some(file.clone()));
    known.admit(on(2)).unwrap();
    assert!(known.since_failover().is_some());
    assert_eq!(known.failovers(), 1);
    known.keep();
    let again = KnownServer::new(Some(file));
    again.admit(on(2)).unwrap();
    assert!(again.since_failover().is_none());
}

#[test]
fn a_former_primary_is_noticed_after_a_restart_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("server");
    let start = || KnownServer::new(Some(file.clone()));
    let first = start();
    first.admit(on(1)).unwrap();
    assert!(!file.exists(), "nothing is written before it may be");
    first.keep();
    first.admit(on(2)).unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "7 2\n");

    let again = start();
    let former = again.admit(on(1)).unwrap_err().to_string();
    assert!(former.contains("former primary") && former.contains(&*file.to_string_lossy()), "{former}");
    again.admit(on(2)).unwrap();
    std::fs::remove_file(&file).unwrap();
    start().admit(on(1)).unwrap();
}

/// An upgrade of PostgreSQL, or a restored dump: the operator restarts the servers, and nothing more.
#[test]
fn a_restart_accepts_another_database_server() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("server");
    std::fs::write(&file, "7 12\n").unwrap();
    let known = KnownServer::new(Some(file.clone()));
    known.admit(ServerIdentity { system: 8, timeline: 1 }).unwrap();
    known.keep();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "8 1\n");
}

#[test]
fn a_file_that_says_nothing_forbids_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("server");
    for content in ["", "\n", "7", "x y\n", "7 x\n"] {
        std::fs::write(&file, content).unwrap();
        KnownServer::new(Some(file.clone())).admit(on(1)).unwrap();
    }
}
