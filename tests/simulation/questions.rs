//! Permission requests of a simulated agent, as kept by the process that talks to it for the server.

use std::collections::BTreeMap;

use crate::dice::Dice;
use crate::process::NEVER;

/// The options of every permission request.
pub(crate) const OPTIONS: [&str; 2] = ["yes", "no"];

/// What settles a permission request if nobody answers.
const TIMEOUT: &str = "timeout";

/// A permission request that is asked at the end of a piece of output.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) request: String,
    /// The time after which it is settled without an answer.
    pub(crate) patience_ms: u64,
    /// The time from an answer until it is settled.
    pub(crate) takes_ms: u64,
    /// The agent does nothing until it is settled.
    pub(crate) waits: bool,
}

/// The open permission requests.
#[derive(Debug, Default)]
pub(crate) struct OpenQuestions(BTreeMap<String, Open>);

#[derive(Debug)]
struct Open {
    asked: Asked,
    settles_ms: u64,
    /// What will settle it, and with which option.
    by: &'static str,
    option: Option<String>,
}

impl OpenQuestions {
    pub(crate) fn ask(&mut self, asked: Asked, now: u64) {
        let settles_ms = now.saturating_add(asked.patience_ms);
        let option = Some(OPTIONS[1].to_owned());
        self.0.insert(asked.request.clone(), Open { asked, settles_ms, by: TIMEOUT, option });
    }

    /// When the next one is settled.
    pub(crate) fn next_ms(&self) -> u64 {
        self.0.values().map(|open| open.settles_ms).min().unwrap_or(NEVER)
    }

    pub(crate) fn contains(&self, request: &str) -> bool {
        self.0.contains_key(request)
    }

    /// The first valid answer counts. Returns how much earlier the agent continues, if it waits for the answer.
    pub(crate) fn answer(&mut self, now: u64, request: &str, option: Option<&str>) -> u64 {
        let offered = option.is_none_or(|option| OPTIONS.contains(&option));
        let Some(open) = self.0.get_mut(request).filter(|open| offered && open.by == TIMEOUT) else {
            return 0;
        };
        let settles_ms = now + open.asked.takes_ms;
        if open.settles_ms <= settles_ms {
            return 0;
        }
        (open.by, open.option) = ("user", option.map(str::to_owned));
        let earlier = open.settles_ms - settles_ms;
        open.settles_ms = settles_ms;
        if open.asked.waits { earlier } else { 0 }
    }

    /// Settles the next one that is due.
    pub(crate) fn settle_next(&mut self) -> Option<Vec<u8>> {
        let next = self.0.iter().min_by_key(|(_, open)| open.settles_ms)?.0.clone();
        let open = self.0.remove(&next)?;
        Some(line(&next, open.option.as_deref(), open.by))
    }

    /// Settles all of them without an answer. Returns the lines that say so.
    pub(crate) fn settle_all(&mut self, by: &str) -> Vec<u8> {
        let open = std::mem::take(&mut self.0);
        open.keys().flat_map(|request| line(request, None, by)).collect()
    }
}

fn line(request: &str, option: Option<&str>, by: &str) -> Vec<u8> {
    let option = option.map(|option| format!(r#""optionId":"{option}","#)).unwrap_or_default();
    format!("{{\"tokenrail\":\"permission_resolved\",\"requestId\":\"{request}\",{option}\"by\":\"{by}\"}}\n")
        .into_bytes()
}

impl Asked {
    pub(crate) fn draw(request: String, dice: &mut Dice) -> Self {
        Self {
            request,
            // The longest is longer than any limit of the server for a silent agent.
            patience_ms: dice.pick(&[30, 3000, 30_000, 90_000]),
            takes_ms: dice.pick(&[0, 3, 40, 400]),
            waits: dice.chance(600),
        }
    }

    /// The line of output that asks it.
    pub(crate) fn line(&self) -> String {
        let options =
            OPTIONS.map(|option| format!(r#"{{"optionId":"{option}","name":"{option}"}}"#)).join(",");
        let request = &self.request;
        format!(
            r#"{{"tokenrail":"permission_request","requestId":"{request}","toolName":"Bash","input":{{}},"options":[{options}]}}"#
        )
    }
}
