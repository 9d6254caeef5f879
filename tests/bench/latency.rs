//! The delay from before the agent prints a line until after a follower has read it, at 500 lines per second.

use serde_json::json;

use crate::http::Place;
use crate::rate::follow_at;
use crate::report::{Report, Table};
use crate::server::{Durability, Server};
use crate::{Failure, Scale};

/// The pace of a fast model: 500 events per second.
pub(crate) const PACE_US: u64 = 2000;
/// Ten seconds of deltas.
const DELTAS: u64 = 5000;

pub(crate) async fn measure(scale: Scale, report: &mut Report) -> Result<(), Failure> {
    let columns = ["synchronous, followers", "samples", "p50 ms", "p99 ms", "p99.9 ms", "max ms"];
    let table = Table::begin("latency: 500 events/s, from the agent's write to a follower's read", &columns);
    for durability in Durability::ALL {
        let server = Server::start(durability)?;
        for followers in [1, 100] {
            let delays = delays_of(&server, scale, followers).await?;
            let name = format!("{}, {followers}", durability.as_str());
            let key = format!("p99 {name}").replace(',', "");
            let [middle, p99, p999, most] = delays.row();
            table.row(&[name, delays.sorted_us.len().to_string(), middle, p99, p999, most]);
            report.keep(key, delays.at(0.99));
        }
    }
    Ok(())
}

/// The delay of every delta at every follower, in microseconds.
pub(crate) struct Delays {
    sorted_us: Vec<u32>,
}

/// Makes an agent print its deltas to `followers` followers.
pub(crate) async fn delays_of(server: &Server, scale: Scale, followers: u64) -> Result<Delays, Failure> {
    delays_at(server, &server.place, scale.of(DELTAS), followers).await
}

/// As [`delays_of`], with followers at another server of the same database.
pub(crate) async fn delays_at(
    server: &Server,
    at: &Place,
    deltas: u64,
    followers: u64,
) -> Result<Delays, Failure> {
    let script = json!({ "deltas": deltas, "pace_us": PACE_US, "stamp": true });
    let seen = follow_at(server, at, script, followers, deltas as usize).await?.seen;
    let sorted_us: Vec<u32> = seen.into_iter().flat_map(|seen| seen.delays_us).collect();
    if sorted_us.len() as u64 != deltas * followers {
        return Err(format!("{} delays of {}", sorted_us.len(), deltas * followers).into());
    }
    Delays::of(sorted_us).ok_or_else(|| "nothing was said".into())
}

impl Delays {
    /// `None` if there are no delays.
    pub(crate) fn of(mut sorted_us: Vec<u32>) -> Option<Self> {
        sorted_us.sort_unstable();
        (!sorted_us.is_empty()).then_some(Self { sorted_us })
    }

    /// All of them together.
    pub(crate) fn of_all(all: Vec<Self>) -> Option<Self> {
        Self::of(all.into_iter().flat_map(|delays| delays.sorted_us).collect())
    }

    /// The quantile for `share`, in microseconds.
    pub(crate) fn at(&self, share: f64) -> f64 {
        f64::from(self.sorted_us[((self.sorted_us.len() - 1) as f64 * share) as usize])
    }

    /// The median, the 99th and 99.9th percentiles, and the maximum, in milliseconds.
    pub(crate) fn row(&self) -> [String; 4] {
        [0.5, 0.99, 0.999, 1.0].map(|share| format!("{:.2}", self.at(share) / 1000.0))
    }
}
