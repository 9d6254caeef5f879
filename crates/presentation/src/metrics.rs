//! The metrics that `/metrics` returns.

use std::fmt;
use std::time::Duration;

use actix_web::http::{Method, StatusCode};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::Registry;
use tokenrail_application::{BusFigures, Failovers, NodeState, NodeStats, Stats, StoreAge, StoreFigures};

/// The metrics of the presentation. Those of the application are read for each request to `/metrics`.
#[derive(Default)]
pub(crate) struct Metrics {
    requests: Family<Answer, Counter>,
}

/// The labels of a response. The route is the template, so no text from a client becomes a label.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answer {
    route: String,
    method: &'static str,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InState {
    state: &'static str,
}

impl Metrics {
    pub(crate) fn answered(&self, route: &str, method: &Method, status: StatusCode) {
        let answer = Answer { route: route.to_owned(), method: known(method), status: status.as_u16() };
        self.requests.get_or_create(&answer).inc();
    }

    /// All metrics, in the text format of `OpenMetrics`.
    pub(crate) fn text(&self, stats: &Stats, open_streams: usize) -> Result<String, fmt::Error> {
        let mut registry = Registry::with_prefix("tokenrail");
        registry.register("http_requests", "HTTP requests answered", self.requests.clone());
        gauges(&mut registry, [("open_streams", "Open WebSockets and event streams", open_streams as u64)]);
        add_stats(&mut registry, stats);
        let mut text = String::new();
        encode(&mut text, &registry)?;
        Ok(text)
    }
}

/// The method as a label. Unknown methods share one label, because clients could invent any number of them.
fn known(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        _ => "other",
    }
}

/// Adds metrics with their names, help texts and values.
fn counters<const N: usize>(registry: &mut Registry, counters: [(&str, &str, u64); N]) {
    for (name, help, count) in counters {
        registry.register(name, help, ConstCounter::new(count));
    }
}

fn gauges<const N: usize>(registry: &mut Registry, gauges: [(&str, &str, u64); N]) {
    for (name, help, value) in gauges {
        registry.register(name, help, ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX)));
    }
}

fn seconds(registry: &mut Registry, name: &str, help: &str, total: Duration) {
    registry.register(name, help, ConstCounter::new(total.as_secs_f64()));
}

fn add_stats(registry: &mut Registry, stats: &Stats) {
    let Stats {
        events_saved,
        batches_saved,
        write_retries,
        turns_started,
        turns_ended,
        invariant_violations,
        active_agents,
        followers,
        tail_bytes,
        tasks,
        nodes,
    } = *stats;
    let violations = "Writes that contradicted a journal, and crashes of agent tasks; must be 0";
    counters(
        registry,
        [
            ("events_saved", "Events committed", events_saved),
            ("batches_saved", "Batches of events committed", batches_saved),
            ("write_retries", "Failed writes that were retried", write_retries),
            ("turns_started", "Turns started", turns_started),
            ("turns_ended", "Turns ended", turns_ended),
            ("invariant_violations", violations, invariant_violations),
        ],
    );
    gauges(
        registry,
        [
            ("active_agents", "Agents that run or wait for a free slot", active_agents),
            ("followers", "Followers of agents", followers),
            ("tail_bytes", "Bytes of recent events in memory", tail_bytes),
            ("tasks", "Tasks that have not ended, except those of connections", tasks),
        ],
    );
    add_nodes(registry, &nodes);
}

/// What a server that shares its database knows of the others.
fn add_nodes(registry: &mut Registry, stats: &NodeStats) {
    let NodeStats {
        by_state,
        beat_age,
        turns_of_lost_nodes,
        events_gathered,
        poll_found,
        errands,
        letters,
        fenced_writes,
        gathers,
        gather_time,
        store,
        bus,
        failovers: Failovers { timeline, count: failovers, repeated, lost, since: _ },
    } = *stats;
    let nodes = Family::<InState, Gauge>::default();
    for (state, count) in NodeState::ALL.into_iter().zip(by_state) {
        nodes.get_or_create(&InState { state: state.as_str() }).set(count as i64);
    }
    registry.register("nodes", "Servers that share the database, by state", nodes);
    let beat = "Time since this server last reported to the other servers that it is alive";
    registry.register("node_beat_age_seconds", beat, ConstGauge::new(beat_age.as_secs_f64()));
    let failover = "PostgreSQL timeline of the database; each failover increases it";
    gauges(registry, [("database_timeline", failover, timeline.into())]);
    let taken_over = "Turns of lost servers that this one has ended";
    let gathered = "Events of other servers' agents, read for followers here";
    let found = "Times that polling found new events before a hint arrived";
    let saved_again = "Changes that a failover of the database had lost, and that were saved again";
    let not_saved = "Changes that a failover of the database has lost, and that could not be saved again";
    counters(
        registry,
        [
            ("turns_of_lost_nodes", taken_over, turns_of_lost_nodes),
            ("events_gathered", gathered, events_gathered),
            ("poll_found", found, poll_found),
            ("errands", "Work started here by commands from other servers", errands),
            (
                "letters",
                "Requests of other servers carried out here: to deliver a permission answer, or to end an idle process",
                letters,
            ),
            ("fenced_writes", "Writes refused because another server had taken over", fenced_writes),
            ("gathers", "Reads of events of other servers' agents", gathers),
            ("database_failovers", "Failovers of the database to another server", failovers),
            ("changes_repeated", saved_again, repeated),
            ("changes_lost", not_saved, lost),
        ],
    );
    let gathering = "Total time of reading events of other servers' agents";
    seconds(registry, "gather_seconds", gathering, gather_time);
    add_database(registry, store, bus);
}

/// What a server has done with a database that it shares.
fn add_database(registry: &mut Registry, store: StoreFigures, bus: BusFigures) {
    let StoreFigures { writes, appends, write_time, unknown_outcomes, age } = store;
    let StoreAge { oldest_snapshot, transaction_id } = age;
    let BusFigures { sent, heard, missed, checks, check_time } = bus;
    let sent_again = "Statements sent again after an unknown outcome";
    counters(
        registry,
        [
            ("database_writes", "Statements that saved output of agents, or tried to", writes),
            ("database_appends", "Batches of agents' output in these statements", appends),
            ("database_unknown_outcomes", sent_again, unknown_outcomes),
            ("hints_sent", "Hints sent to other servers", sent),
            ("hints_heard", "Hints received from other servers", heard),
            (
                "hints_missed",
                "Times that this server checked all agents, because hints may have been lost",
                missed,
            ),
            ("hint_checks", "Hints that this server sent to itself and received", checks),
        ],
    );
    let writing = "Total time of the statements that saved output, or tried to";
    seconds(registry, "database_write_seconds", writing, write_time);
    let hinting = "Total delay of the hints that this server sent to itself";
    seconds(registry, "hint_check_seconds", hinting, check_time);
    gauges(
        registry,
        [
            ("database_oldest_snapshot", "Transactions since the oldest snapshot in use", oldest_snapshot),
            ("database_transaction_id_age", "Age of the oldest transaction id", transaction_id),
        ],
    );
}
