//! From the moment before the agent prints a line to the moment after a follower has read it, at 500 lines a second.

use serde_json::json;

use crate::rate::follow;
use crate::report::{Report, Table};
use crate::server::{Durability, Server};
use crate::{Failure, Scale};

const PACE_US: u64 = 2000;
/// Ten seconds of them.
const DELTAS: u64 = 5000;

pub(crate) async fn measure(scale: Scale, report: &mut Report) -> Result<(), Failure> {
    let columns = ["synchronous, followers", "samples", "p50 ms", "p99 ms", "p99.9 ms", "max ms"];
    let table = Table::begin("latency: 500 events/s, from the agent's write to a follower's read", &columns);
    for durability in Durability::ALL {
        let server = Server::start(durability)?;
        for followers in [1, 100] {
            let deltas = scale.of(DELTAS);
            let script = json!({ "deltas": deltas, "pace_us": PACE_US, "stamp": true });
            let seen = follow(&server, script, followers, deltas as usize).await?.seen;
            let mut delays: Vec<u32> = seen.into_iter().flat_map(|seen| seen.delays_us).collect();
            if delays.len() as u64 != deltas * followers {
                return Err(format!("{} delays of {}", delays.len(), deltas * followers).into());
            }
            delays.sort_unstable();
            let at = |share: f64| f64::from(delays[((delays.len() - 1) as f64 * share) as usize]);
            let name = format!("{}, {followers}", durability.as_str());
            let ms = |share: f64| format!("{:.2}", at(share) / 1000.0);
            let (samples, key) = (delays.len().to_string(), format!("p99 {name}").replace(',', ""));
            table.row(&[name, samples, ms(0.5), ms(0.99), ms(0.999), ms(1.0)]);
            report.keep(key, at(0.99));
        }
    }
    Ok(())
}
