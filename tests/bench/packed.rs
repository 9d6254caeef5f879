//! One agent that floods its followers with short tokens: bytes per token on the wire and tokens per second, each in
//! its own frame and packed.

use serde_json::json;

use crate::cores::Cores;
use crate::peers::Who;
use crate::rate::{Audience, flood_for};
use crate::report::{Report, Table, grouped, progress};
use crate::server::{Durability, Setup};
use crate::websocket::{Form, Way};
use crate::{Failure, Plan};

/// The number of followers, and how many tokens the agent prints, single and packed: enough for a second or two.
const FLOODS: [(u64, [u64; 2]); 3] =
    [(1, [100_000, 100_000]), (100, [50_000, 200_000]), (1000, [20_000, 100_000])];
/// A token of four characters, as most tokens of a model.
const WORD: &str = "wolf";

pub(crate) async fn measure(plan: &Plan, report: &mut Report) -> Result<(), Failure> {
    let cores = Cores::divide()?;
    let columns = [
        "followers, way, form         ",
        "tokens",
        "events/s",
        "lowest",
        "highest",
        "bytes/token",
        "MB/s sent",
        "/ single",
    ];
    let table = Table::begin("packed: a flood of tokens of four characters", &columns);
    println!("({}; normal, data in memory; the middle of {REPEATS})", Cores::describe(cores.as_ref()));
    Who::tell_missing(plan.peers);
    for (followers, tokens) in FLOODS {
        let (followers, tokens) =
            (plan.scale.of(followers).max(1), tokens.map(|tokens| plan.scale.of(tokens)));
        let mut on_sockets = None;
        for way in Way::ALL {
            let mut single = None;
            for (form, tokens) in [Form::Single, Form::Packed].into_iter().zip(tokens) {
                let audience = Audience { followers, way, form, thorough: true };
                let name = format!("{followers}, {}, {}", way.as_str(), form.as_str());
                let measured = middle(Who::Tokenrail, cores.as_ref(), audience, tokens, &name).await?;
                let ratio = single.map(|single| measured.rate / single);
                table.row(&measured.row(&name, tokens, followers, ratio));
                single.get_or_insert(measured.rate);
                on_sockets.get_or_insert(measured.rate);
                if let Some(ratio) = ratio {
                    let key = format!("packed {followers} {}", way.as_str());
                    report.keep(format!("{key}: ratio"), ratio);
                    report.keep(format!("{key}: bytes"), measured.bytes_per_token);
                }
            }
        }
        // The peer that inserts each token alone would take minutes for this, so it is left out.
        if Who::all(plan.peers).contains(&Who::NodeRead) {
            let audience = Audience { followers, way: Way::WebSocket, form: Form::Single, thorough: true };
            let name = format!("{followers}, {}, {}", Way::WebSocket.as_str(), Who::NodeRead.as_str());
            let measured = middle(Who::NodeRead, cores.as_ref(), audience, tokens[0], &name).await?;
            let ratio = on_sockets.map(|single| measured.rate / single);
            table.row(&measured.row(&name, tokens[0], followers, ratio));
        }
    }
    Ok(())
}

/// The number of floods. The median counts.
const REPEATS: usize = 3;

struct Measured {
    rate: f64,
    lowest: f64,
    highest: f64,
    bytes_per_token: f64,
}

impl Measured {
    fn row(&self, name: &str, tokens: u64, followers: u64, ratio: Option<f64>) -> Vec<String> {
        vec![
            name.to_owned(),
            grouped(tokens as f64),
            grouped(self.rate),
            grouped(self.lowest),
            grouped(self.highest),
            format!("{:.0}", self.bytes_per_token),
            grouped(self.bytes_per_token * self.rate * followers as f64 / 1e6),
            ratio.map_or(String::new(), |ratio| format!("{ratio:.2} x")),
        ]
    }
}

async fn middle(
    who: Who,
    cores: Option<&Cores>,
    audience: Audience,
    tokens: u64,
    name: &str,
) -> Result<Measured, Failure> {
    let setup = Setup { durability: Durability::Normal, more: "", in_memory: true, cores, program: None };
    let server = who.start(&setup)?;
    let mut floods = Vec::new();
    for _ in 0..REPEATS {
        progress(name);
        server.rest().await?;
        let flood = flood_for(&server, json!({ "deltas": tokens, "word": WORD }), audience);
        floods.push(flood.await.map_err(|failure| format!("{name}: {failure}"))?);
    }
    floods.sort_by(|a, b| a.rate().total_cmp(&b.rate()));
    let (lowest, highest) = (floods[0].rate(), floods[REPEATS - 1].rate());
    let flood = &floods[REPEATS / 2];
    Ok(Measured { rate: flood.rate(), lowest, highest, bytes_per_token: flood.bytes_per_token() })
}
