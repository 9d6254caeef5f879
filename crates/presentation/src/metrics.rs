//! The metrics that `/metrics` returns.

use std::fmt;

use actix_web::http::{Method, StatusCode};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::sync::atomic::Ordering;
use tokenrail_application::Stats;

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
    pub(crate) fn text(&self, stats: Stats, open_streams: usize) -> Result<String, fmt::Error> {
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
                "Writes that contradicted a journal; must be 0",
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
    }

    fn update(&self, stats: Stats) {
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
        } = stats;
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
    }
}
