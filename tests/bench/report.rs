//! What was measured, as tables, and what was aimed at.

use std::collections::BTreeMap;

/// Lines of one table, printed as they come.
pub(crate) struct Table {
    widths: Vec<usize>,
}

impl Table {
    /// Prints the title and the head.
    pub(crate) fn begin(title: &str, columns: &[&str]) -> Self {
        println!("\n{title}");
        let widths = columns.iter().map(|column| column.len().max(10)).collect();
        let table = Self { widths };
        table.row(columns);
        table
    }

    pub(crate) fn row<T: AsRef<str>>(&self, cells: &[T]) {
        let mut line = String::new();
        for (index, (cell, width)) in cells.iter().zip(&self.widths).enumerate() {
            let cell = cell.as_ref();
            let cell = if index == 0 { format!("{cell:<24}") } else { format!("  {cell:>width$}") };
            line.push_str(&cell);
        }
        println!("{line}");
    }
}

/// A number as people read it.
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

/// The figures that the aims are about.
#[derive(Default)]
pub(crate) struct Report {
    figures: BTreeMap<String, f64>,
}

impl Report {
    pub(crate) fn keep(&mut self, name: impl Into<String>, figure: f64) {
        self.figures.insert(name.into(), figure);
    }

    fn ratio(&self, part: &str, whole: &str) -> Option<f64> {
        Some(self.figures.get(part)? / self.figures.get(whole)?)
    }

    /// Prints which aims are met, of those that were measured.
    pub(crate) fn print_aims(&self) {
        let table = Table::begin("aims", &["", "       aim", "measured", "met"]);
        let show =
            |name: &str, aim: &str, measured: Option<f64>, text: fn(f64) -> String, met: fn(f64) -> bool| {
                if let Some(measured) = measured {
                    let met = if met(measured) { "yes" } else { "no" };
                    table.row(&[name, aim, &text(measured), met]);
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
        for (name, key) in [("catch-up, WebSocket", "catch-up ws"), ("catch-up, SSE", "catch-up sse")] {
            show(name, "> 400,000/s", figure(key), grouped, |rate| 400_000.0 < rate);
        }
    }
}
