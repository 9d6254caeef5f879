//! The steps of the schema. A release works with the schema before its own and after it, so that the servers of a
//! database can be upgraded one after the other: a step adds, and what only older programs need is removed later.

/// The steps that a program knows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Steps {
    /// The `n`th migrates a database from schema n to n + 1. A program that knows one less works with the result.
    pub(crate) migrations: &'static [&'static str],
    /// What is removed when no node that is alive or away has a program that knows less than this schema. A program
    /// that knows less must not use the database afterwards.
    pub(crate) removals: &'static [Removal],
    /// What a program that knows these steps sets on each connection.
    pub(crate) setting: &'static str,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Removal {
    pub(crate) schema: i32,
    pub(crate) sql: &'static str,
}

impl Steps {
    /// The schema with all steps.
    pub(crate) fn schema(&self) -> i32 {
        self.migrations.len() as i32
    }
}

const MIGRATIONS: [&str; 9] = [
    include_str!("../../../../../migrations/postgres/0001_initial.sql"),
    include_str!("../../../../../migrations/postgres/0002_nodes.sql"),
    include_str!("../../../../../migrations/postgres/0003_launches.sql"),
    include_str!("../../../../../migrations/postgres/0004_failover.sql"),
    include_str!("../../../../../migrations/postgres/0005_catch_up.sql"),
    include_str!("../../../../../migrations/postgres/0006_commands.sql"),
    include_str!("../../../../../migrations/postgres/0007_edits.sql"),
    include_str!("../../../../../migrations/postgres/0008_parents.sql"),
    include_str!("../../../../../migrations/postgres/0009_queued_on.sql"),
];

pub(crate) static RELEASED: Steps = Steps { migrations: &MIGRATIONS, removals: &[], setting: "" };

/// As a later release could have them. Tests upgrade servers to it.
pub(crate) static WITH_TEST_STEP: Steps = Steps {
    migrations: &TEST_MIGRATIONS,
    removals: &[Removal { schema: TEST_MIGRATIONS.len() as i32, sql: "DROP VIEW public.idempotency" }],
    setting: "SET search_path = newer, public",
};

const TEST_MIGRATIONS: [&str; MIGRATIONS.len() + 1] = {
    let (mut all, mut at) = ([TEST_STEP; MIGRATIONS.len() + 1], 0);
    while at < MIGRATIONS.len() {
        all[at] = MIGRATIONS[at];
        at += 1;
    }
    all
};

/// Moves a table that most requests use: it is at its new place at once, and a view is at its old place until nobody
/// needs that. Each program finds one of them by the same name. Without the view, requests to older programs fail.
const TEST_STEP: &str = "
    CREATE SCHEMA newer;
    ALTER TABLE idempotency SET SCHEMA newer;
    CREATE VIEW public.idempotency AS SELECT * FROM newer.idempotency;
    ALTER TABLE agents ADD newer text";
