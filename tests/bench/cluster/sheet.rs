//! The table: a line for each figure, and a column for each storage.

use std::collections::BTreeMap;

use crate::latency::Delays;
use crate::report::{Table, grouped};

/// The width of the names of lines.
const WIDTH: usize = 51;

/// Where the servers store their data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Storage {
    Sqlite,
    Postgres,
    /// PostgreSQL with a synchronous standby.
    Replicated,
}

impl Storage {
    const ALL: [Self; 3] = [Self::Sqlite, Self::Postgres, Self::Replicated];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
            Self::Replicated => "with a standby",
        }
    }
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Line {
    Owner,
    ManyAtOwner,
    Other,
    ManyAtOther,
    FloodOne,
    FloodSeveral,
    WalAlone,
    WalOf32,
    WalOfServer,
    Untold,
    Killed,
    Failover,
}

/// What a figure should be.
#[derive(Debug, Clone, Copy)]
enum Target {
    AtMost(f64),
    AtLeast(f64),
    None,
}

impl Line {
    const ALL: [Self; 12] = [
        Self::Owner,
        Self::ManyAtOwner,
        Self::Other,
        Self::ManyAtOther,
        Self::FloodOne,
        Self::FloodSeveral,
        Self::WalAlone,
        Self::WalOf32,
        Self::WalOfServer,
        Self::Untold,
        Self::Killed,
        Self::Failover,
    ];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "500 events/s, 1 reader at the owner: p50, p99 ms",
            Self::ManyAtOwner => "100 readers at the owner: p50, p99 ms",
            Self::Other => "1 reader at another server: p50, p99 ms",
            Self::ManyAtOther => "100 readers at another server: p50, p99 ms",
            Self::FloodOne => "flood, 6 agents on one server: events/s",
            Self::FloodSeveral => "flood, 6 agents on three servers: events/s",
            Self::WalAlone => "log bytes of a token, alone",
            Self::WalOf32 => "log bytes of a token, in batches of 32",
            Self::WalOfServer => "log bytes of a token, all at 500 events/s",
            Self::Untold => "no hints, reader at another server: p50, max s",
            Self::Killed => "reader of a killed server goes on after: s",
            Self::Failover => "primary killed, standby promoted: longest silence s",
        }
    }

    fn target(self) -> Target {
        match self {
            Self::Owner => Target::AtMost(6.0),
            Self::Other => Target::AtMost(20.0),
            Self::ManyAtOther => Target::AtMost(25.0),
            Self::FloodOne => Target::AtLeast(80_000.0),
            Self::FloodSeveral => Target::AtLeast(60_000.0),
            Self::WalAlone => Target::AtMost(700.0),
            Self::WalOf32 => Target::AtMost(150.0),
            Self::Untold => Target::AtMost(1.5),
            Self::Killed => Target::AtMost(2.0),
            Self::Failover => Target::AtMost(3.0),
            Self::ManyAtOwner | Self::WalOfServer => Target::None,
        }
    }
}

struct Cell {
    shown: String,
    figure: f64,
}

/// The figures.
#[derive(Default)]
pub(super) struct Sheet(BTreeMap<(Line, Storage), Cell>);

impl Sheet {
    /// The 99th percentile counts.
    pub(super) fn delays(&mut self, line: Line, storage: Storage, delays: &Delays) {
        let [p50, p99] = [0.5, 0.99].map(|share| delays.at(share) / 1000.0);
        self.put(line, storage, format!("{p50:.2}, {p99:.2}"), p99);
    }

    /// The longest delay counts.
    pub(super) fn late(&mut self, line: Line, storage: Storage, delays: &Delays) {
        let [p50, most] = [0.5, 1.0].map(|share| delays.at(share) / 1e6);
        self.put(line, storage, format!("{p50:.2}, {most:.2}"), most);
    }

    pub(super) fn rate(&mut self, line: Line, storage: Storage, rate: f64) {
        self.put(line, storage, grouped(rate), rate);
    }

    pub(super) fn bytes(&mut self, line: Line, storage: Storage, bytes: f64) {
        self.put(line, storage, format!("{bytes:.0}"), bytes);
    }

    pub(super) fn seconds(&mut self, line: Line, storage: Storage, seconds: f64) {
        self.put(line, storage, format!("{seconds:.2}"), seconds);
    }

    fn put(&mut self, line: Line, storage: Storage, shown: String, figure: f64) {
        self.0.insert((line, storage), Cell { shown, figure });
    }

    /// Prints all lines. Returns those whose target is missed. A target is for PostgreSQL without a standby, if that
    /// was measured.
    pub(super) fn print(&self) -> Vec<&'static str> {
        let mut missed = Vec::new();
        let wide = " ".repeat(WIDTH);
        let [sqlite, postgres, replicated] = Storage::ALL.map(|storage| format!("{:>14}", storage.as_str()));
        let columns = [&wide, &sqlite, &postgres, &replicated, "    target", "met"];
        let table = Table::begin("cluster: several servers on one PostgreSQL", &columns);
        for line in Line::ALL {
            let cell = |storage| self.0.get(&(line, storage));
            let judged = cell(Storage::Postgres).or_else(|| cell(Storage::Replicated));
            let (target, met) = match (line.target(), judged) {
                (Target::AtMost(most), Some(cell)) => {
                    (format!("<= {}", grouped_or_short(most)), cell.figure <= most)
                }
                (Target::AtLeast(least), Some(cell)) => {
                    (format!(">= {}", grouped(least)), least <= cell.figure)
                }
                (Target::None, _) | (_, None) => (String::new(), true),
            };
            let met = match (target.is_empty(), met) {
                (true, _) => "",
                (false, true) => "yes",
                (false, false) => {
                    missed.push(line.as_str());
                    "no"
                }
            };
            let [sqlite, postgres, replicated] =
                Storage::ALL.map(|storage| cell(storage).map_or("-", |cell| cell.shown.as_str()));
            table.row(&[line.as_str(), sqlite, postgres, replicated, &target, met]);
        }
        missed
    }
}

fn grouped_or_short(number: f64) -> String {
    if number.fract() == 0.0 { grouped(number) } else { number.to_string() }
}
