//! Tables of the measurements, and the targets.

use std::collections::BTreeMap;

use crate::Failure;

/// Writes to standard error what is being measured, so that a slow row can be told from one that hangs.
pub(crate) fn progress(what: &str) {
    eprintln!("  ... {what}");
}

/// The rows of one table, printed as they come.
pub(crate) struct Table {
    widths: Vec<usize>,
}

impl Table {
    /// Prints the title and the header.
    pub(crate) fn begin(title: &str, columns: &[&str]) -> Self {
        println!("\n{title}");
        let least = |index| if index == 0 { 24 } else { 10 };
        let widths =
            columns.iter().enumerate().map(|(index, column)| column.len().max(least(index))).collect();
        let table = Self { widths };
        table.row(columns);
        table
    }

    pub(crate) fn row<T: AsRef<str>>(&self, cells: &[T]) {
        let mut line = String::new();
        for (index, (cell, width)) in cells.iter().zip(&self.widths).enumerate() {
            let cell = cell.as_ref();
            let cell = if index == 0 { format!("{cell:<width$}") } else { format!("  {cell:>width$}") };
            line.push_str(&cell);
        }
        println!("{line}");
    }
}

/// A number with separators.
pub(crate) fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if 0 < index && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Prints a row of the targets: its name, the target, the measured value, its format, and whether it is met.
type Show<'a> = dyn Fn(&str, &str, Option<f64>, fn(f64) -> String, fn(f64) -> bool) + 'a;

/// The figures that the targets refer to.
#[derive(Default)]
pub(crate) struct Report {
    figures: BTreeMap<String, f64>,
    /// Errors that did not stop the run, but make it fail.
    faults: Vec<String>,
}

impl Report {
    pub(crate) fn keep(&mut self, name: impl Into<String>, figure: f64) {
        self.figures.insert(name.into(), figure);
    }

    pub(crate) fn fail(&mut self, fault: String) {
        self.faults.push(fault);
    }

    /// An error with all faults, one per line.
    pub(crate) fn verdict(&self) -> Result<(), Failure> {
        if self.faults.is_empty() { Ok(()) } else { Err(self.faults.join("\n").into()) }
    }

    fn ratio(&self, part: &str, whole: &str) -> Option<f64> {
        Some(self.figures.get(part)? / self.figures.get(whole)?)
    }

    /// Prints the targets that were measured, and whether they are met.
    pub(crate) fn print_targets(&self) {
        let table = Table::begin(
            "targets",
            &["                                        ", "    target", "measured", "met"],
        );
        let show = |name: &str,
                    target: &str,
                    measured: Option<f64>,
                    text: fn(f64) -> String,
                    met: fn(f64) -> bool| {
            if let Some(measured) = measured {
                let met = if met(measured) { "yes" } else { "no" };
                table.row(&[name, target, &text(measured), met]);
            }
        };
        let percent = |part: f64| format!("{:.0} %", part * 100.0);
        let ms = |micros: f64| format!("{:.2} ms", micros / 1000.0);
        let half = |part: f64| 0.5 <= part;
        show("rate 1 / raw, full", ">= 50 %", self.ratio("rate full 1", "raw full"), percent, half);
        show("rate 1 / raw, normal", ">= 50 %", self.ratio("rate normal 1", "raw normal"), percent, half);
        show("rate full / normal", ">= 50 %", self.ratio("rate full 1", "rate normal 1"), percent, half);
        let figure = |name: &str| self.figures.get(name).copied();
        show("p99 x 100, full", "< 8 ms", figure("p99 full 100"), ms, |micros| micros < 8000.0);
        show("p99 x 100, normal", "< 4 ms", figure("p99 normal 100"), ms, |micros| micros < 4000.0);
        let twice = |name: &str| self.ratio(&format!("beside {name}, 10"), "beside nobody, 10");
        for name in crate::neighbours::HARMFUL {
            show(
                &format!("p99 x 10 beside {name}"),
                "<= 2 x",
                twice(name),
                |times| format!("{times:.2} x"),
                |times| times <= 2.0,
            );
        }
        for followers in [1, 100, 1000] {
            let ratio = self.ratio(&format!("rate normal {followers}"), &format!("rate full {followers}"));
            show(&format!("rate {followers}, normal / full"), ">= 100 %", ratio, percent, |part| 1.0 <= part);
        }
        self.show_agents(&show);
        for (name, key) in [("catch-up, WebSocket", "catch-up ws"), ("catch-up, SSE", "catch-up sse")] {
            show(name, "> 400,000/s", figure(key), grouped, |rate| 400_000.0 < rate);
        }
    }

    /// Many agents, and packed deltas.
    fn show_agents(&self, show: &Show<'_>) {
        let figure = |name: &str| self.figures.get(name).copied();
        let times = |ratio: f64| format!("{ratio:.2} x");
        for agents in [100, 300] {
            let ours = format!("agents {agents} x 10, Tokenrail");
            let node = format!("agents {agents} x 10, Node: p99");
            let ratio = self.ratio(&format!("{ours}: p99"), &node);
            show(&format!("p99 of {agents} x 10 / Node"), "<= 0.5 x", ratio, times, |ratio| ratio <= 0.5);
            let name = format!("server time of {agents} x 10, each event");
            show(
                &name,
                "<= 40 us",
                figure(&format!("{ours}: cpu")),
                |us| format!("{us:.0} us"),
                |us| us <= 40.0,
            );
        }
        let crowd = "agents 1000 x 20, Tokenrail";
        let arrived = figure(&format!("{crowd}: arrived"));
        show(
            "1000 x 20: arrived",
            "100 %",
            arrived,
            |part| format!("{:.1} %", part * 100.0),
            |part| 1.0 <= part,
        );
        let ratio = self.ratio(&format!("{crowd}: p99"), "agents 1000 x 20, Node: p99");
        show("1000 x 20: p99 / Node", "< 1 x", ratio, times, |ratio| ratio < 1.0);
        let threads = figure(&format!("{crowd}: threads"));
        show("1000 x 20: threads", "<= 40", threads, |count| format!("{count:.0}"), |count| count <= 40.0);
        let launch = figure("launch of 1000, Tokenrail");
        show(
            "launch of 1000",
            "<= 60 s",
            launch,
            |seconds| format!("{seconds:.1} s"),
            |seconds| seconds <= 60.0,
        );
        let answers = figure("launch of 1000, Tokenrail: get");
        let ms = |micros: f64| format!("{:.1} ms", micros / 1000.0);
        show("GET p99 during the launch of 1000", "< 50 ms", answers, ms, |micros| micros < 50_000.0);
        let ratio = self.ratio(
            "agents 1 x 500, 100 followers, Tokenrail: p99",
            "agents 1 x 500, 100 followers, Node, batches: p99",
        );
        show("p99 of 500/s x 100 / Node, batches", "< 1 x", ratio, times, |ratio| ratio < 1.0);
        for way in crate::websocket::Way::ALL.map(crate::websocket::Way::as_str) {
            let bytes = figure(&format!("packed 1 {way}: bytes"));
            show(
                &format!("packed {way}, bytes a token"),
                "<= 40",
                bytes,
                |bytes| format!("{bytes:.0}"),
                |bytes| bytes <= 40.0,
            );
            let ratio = |followers| figure(&format!("packed {followers} {way}: ratio"));
            show(&format!("packed {way} x 100 / single"), ">= 3 x", ratio(100), times, |ratio| 3.0 <= ratio);
            show(&format!("packed {way} x 1000 / single"), ">= 5 x", ratio(1000), times, |ratio| {
                5.0 <= ratio
            });
        }
    }
}
