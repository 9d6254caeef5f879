//! The metrics that `/metrics` returns.

use std::fmt;

use actix_web::http::{Method, StatusCode};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokenrail_application::{BusFigures, Failovers, NodeState, NodeStats, Stats, StoreAge, StoreFigures};

/// The metrics of the presentation, and a copy of the application's metrics from the latest request.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Answer, Counter>,
    streams: Gauge,
    stats: AppMetrics,
}

/// The labels of a response. The route is the template, so no text from a client becomes a label.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answer {
    route: String,
    method: &'static str,
    status: u16,
}

#[derive(Default)]
struct AppMetrics {
    events_saved: Counter,
    batches_saved: Counter,
    write_retries: Counter,
    turns_started: Counter,
    turns_ended: Counter,
    invariant_violations: Counter,
    active_agents: Gauge,
    followers: Gauge,
    tail_bytes: Gauge,
    tasks: Gauge,
    nodes: NodeMetrics,
}

/// What a server that shares its database knows of the others.
#[derive(Default)]
struct NodeMetrics {
    by_state: Family<InState, Gauge>,
    beat_age: Gauge<f64, AtomicU64>,
    turns_of_lost_nodes: Counter,
    events_gathered: Counter,
    poll_found: Counter,
    errands: Counter,
    letters: Counter,
    timeline: Gauge,
    failovers: Counter,
    repeated: Counter,
    lost: Counter,
    fenced_writes: Counter,
    gathers: Counter,
    gather_seconds: Counter<f64, AtomicU64>,
    database: DatabaseMetrics,
}

/// What a server has done with a database that it shares.
#[derive(Default)]
struct DatabaseMetrics {
    writes: Counter,
    appends: Counter,
    write_seconds: Counter<f64, AtomicU64>,
    unknown_outcomes: Counter,
    oldest_snapshot: Gauge,
    transaction_id_age: Gauge,
    hints_sent: Counter,
    hints_heard: Counter,
    hints_missed: Counter,
    hint_checks: Counter,
    hint_check_seconds: Counter<f64, AtomicU64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InState {
    state: &'static str,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("tokenrail");
        let requests = Family::<Answer, Counter>::default();
        let streams = Gauge::default();
        registry.register("http_requests", "HTTP requests answered", requests.clone());
        registry.register("open_streams", "Open WebSockets and event streams", streams.clone());
        let stats = AppMetrics::default();
        stats.register(&mut registry);
        Self { registry, requests, streams, stats }
    }

    pub(crate) fn answered(&self, route: &str, method: &Method, status: StatusCode) {
        let answer = Answer { route: route.to_owned(), method: known(method), status: status.as_u16() };
        self.requests.get_or_create(&answer).inc();
    }

    /// All metrics, in the text format of `OpenMetrics`.
    pub(crate) fn text(&self, stats: &Stats, open_streams: usize) -> Result<String, fmt::Error> {
        self.streams.set(open_streams as i64);
        self.stats.update(stats);
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
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

impl AppMetrics {
    fn register(&self, registry: &mut Registry) {
        let counters = [
            ("events_saved", "Events committed", &self.events_saved),
            ("batches_saved", "Batches of events committed", &self.batches_saved),
            ("write_retries", "Failed writes that were retried", &self.write_retries),
            ("turns_started", "Turns started", &self.turns_started),
            ("turns_ended", "Turns ended", &self.turns_ended),
            (
                "invariant_violations",
                "Writes that contradicted a journal, and crashes of agent tasks; must be 0",
                &self.invariant_violations,
            ),
        ];
        for (name, help, counter) in counters {
            registry.register(name, help, counter.clone());
        }
        let gauges = [
            ("active_agents", "Running and queued agents", &self.active_agents),
            ("followers", "Followers of agents", &self.followers),
            ("tail_bytes", "Bytes of recent events in memory", &self.tail_bytes),
            ("tasks", "Tasks that have not ended, except those of connections", &self.tasks),
        ];
        for (name, help, gauge) in gauges {
            registry.register(name, help, gauge.clone());
        }
        self.nodes.register(registry);
    }

    fn update(&self, stats: &Stats) {
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
        let counters = [
            (&self.events_saved, events_saved),
            (&self.batches_saved, batches_saved),
            (&self.write_retries, write_retries),
            (&self.turns_started, turns_started),
            (&self.turns_ended, turns_ended),
            (&self.invariant_violations, invariant_violations),
        ];
        for (counter, count) in counters {
            counter.inner().store(count, Ordering::Relaxed);
        }
        self.active_agents.set(active_agents as i64);
        self.followers.set(followers as i64);
        self.tail_bytes.set(tail_bytes as i64);
        self.tasks.set(tasks as i64);
        self.nodes.update(&nodes);
    }
}

impl NodeMetrics {
    fn register(&self, registry: &mut Registry) {
        registry.register("nodes", "Servers that share the database, by state", self.by_state.clone());
        registry.register(
            "node_beat_age_seconds",
            "Time since this server last reported to the other servers that it is alive",
            self.beat_age.clone(),
        );
        registry.register(
            "database_timeline",
            "PostgreSQL timeline of the database; each failover increases it",
            self.timeline.clone(),
        );
        let counters = [
            (
                "turns_of_lost_nodes",
                "Turns of lost servers that this one has ended",
                &self.turns_of_lost_nodes,
            ),
            (
                "events_gathered",
                "Events of other servers' agents, read for followers here",
                &self.events_gathered,
            ),
            ("poll_found", "Journals found to have grown although no hint had arrived", &self.poll_found),
            ("errands", "Work started here by commands from other servers", &self.errands),
            ("letters", "Letters from other servers that were carried out", &self.letters),
            ("fenced_writes", "Writes refused because another server had taken over", &self.fenced_writes),
            ("gathers", "Reads of events of other servers' agents", &self.gathers),
            ("database_failovers", "Failovers of the database to another server", &self.failovers),
            (
                "changes_repeated",
                "Changes that a failover of the database had lost, and that were saved again",
                &self.repeated,
            ),
            (
                "changes_lost",
                "Changes that a failover of the database has lost, and that could not be saved again",
                &self.lost,
            ),
        ];
        for (name, help, counter) in counters {
            registry.register(name, help, counter.clone());
        }
        let seconds = "Total time of reading events of other servers' agents";
        registry.register("gather_seconds", seconds, self.gather_seconds.clone());
        self.database.register(registry);
    }

    fn update(&self, stats: &NodeStats) {
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
            failovers: Failovers { timeline, count, repeated, lost, since: _ },
        } = *stats;
        self.timeline.set(i64::from(timeline));
        for (state, count) in NodeState::ALL.into_iter().zip(by_state) {
            self.by_state.get_or_create(&InState { state: state.as_str() }).set(count as i64);
        }
        self.beat_age.set(beat_age.as_secs_f64());
        let counters = [
            (&self.turns_of_lost_nodes, turns_of_lost_nodes),
            (&self.events_gathered, events_gathered),
            (&self.poll_found, poll_found),
            (&self.errands, errands),
            (&self.letters, letters),
            (&self.fenced_writes, fenced_writes),
            (&self.gathers, gathers),
            (&self.failovers, count),
            (&self.repeated, repeated),
            (&self.lost, lost),
        ];
        for (counter, count) in counters {
            counter.inner().store(count, Ordering::Relaxed);
        }
        set_seconds(&self.gather_seconds, gather_time);
        self.database.update(store, bus);
    }
}

impl DatabaseMetrics {
    fn register(&self, registry: &mut Registry) {
        let counters = [
            ("database_writes", "Statements that saved output of agents, or tried to", &self.writes),
            ("database_appends", "Batches of agents' output that were saved", &self.appends),
            (
                "database_unknown_outcomes",
                "Statements sent again after an unknown outcome",
                &self.unknown_outcomes,
            ),
            ("hints_sent", "Hints sent to other servers", &self.hints_sent),
            ("hints_heard", "Hints received from other servers", &self.hints_heard),
            ("hints_missed", "How often hints may have been lost", &self.hints_missed),
            ("hint_checks", "Hints that this server sent to itself and received", &self.hint_checks),
        ];
        for (name, help, counter) in counters {
            registry.register(name, help, counter.clone());
        }
        let seconds = [
            ("database_write_seconds", "Total time of the statements that saved output", &self.write_seconds),
            (
                "hint_check_seconds",
                "Total delay of the hints that this server sent to itself",
                &self.hint_check_seconds,
            ),
        ];
        for (name, help, counter) in seconds {
            registry.register(name, help, counter.clone());
        }
        let gauges = [
            (
                "database_oldest_snapshot",
                "Transactions since the oldest snapshot in use",
                &self.oldest_snapshot,
            ),
            ("database_transaction_id_age", "Age of the oldest transaction id", &self.transaction_id_age),
        ];
        for (name, help, gauge) in gauges {
            registry.register(name, help, gauge.clone());
        }
    }

    fn update(&self, store: StoreFigures, bus: BusFigures) {
        let StoreFigures { writes, appends, write_time, unknown_outcomes, age } = store;
        let StoreAge { oldest_snapshot, transaction_id } = age;
        let BusFigures { sent, heard, missed, checks, check_time } = bus;
        let counters = [
            (&self.writes, writes),
            (&self.appends, appends),
            (&self.unknown_outcomes, unknown_outcomes),
            (&self.hints_sent, sent),
            (&self.hints_heard, heard),
            (&self.hints_missed, missed),
            (&self.hint_checks, checks),
        ];
        for (counter, count) in counters {
            counter.inner().store(count, Ordering::Relaxed);
        }
        set_seconds(&self.write_seconds, write_time);
        set_seconds(&self.hint_check_seconds, check_time);
        self.oldest_snapshot.set(i64::try_from(oldest_snapshot).unwrap_or(i64::MAX));
        self.transaction_id_age.set(i64::try_from(transaction_id).unwrap_or(i64::MAX));
    }
}

fn set_seconds(counter: &Counter<f64, AtomicU64>, time: Duration) {
    counter.inner().store(time.as_secs_f64().to_bits(), Ordering::Relaxed);
}
