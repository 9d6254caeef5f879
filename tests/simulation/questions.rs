//! Questions of a simulated agent, as whoever speaks with it for the server keeps them.

use std::collections::BTreeMap;

use crate::dice::Dice;
use crate::process::NEVER;

/// What may be answered to each of them.
pub(crate) const OPTIONS: [&str; 2] = ["yes", "no"];

/// Who settles it where nobody answers.
const TIMEOUT: &str = "timeout";

/// A question that is asked with a piece of output.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) request: String,
    /// It is settled after so long, if nobody answers.
    pub(crate) patience_ms: u64,
    /// How long it takes until an answer settles it.
    pub(crate) takes_ms: u64,
    /// The agent does nothing until it is settled.
    pub(crate) waits: bool,
}

/// Those that are open.
#[derive(Debug, Default)]
pub(crate) struct OpenQuestions(BTreeMap<String, Open>);

#[derive(Debug)]
struct Open {
    asked: Asked,
    settles_ms: u64,
    /// By whom it is going to be settled, and by which option.
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

    /// The first answer that was offered counts. Gives how much earlier it goes on, where the agent waits for it.
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

    /// Settles the one whose time it is.
    pub(crate) fn settle_next(&mut self) -> Option<Vec<u8>> {
        let next = self.0.iter().min_by_key(|(_, open)| open.settles_ms)?.0.clone();
        let open = self.0.remove(&next)?;
        Some(line(&next, open.option.as_deref(), open.by))
    }

    /// Settles all of them without an answer; gives what is said of that.
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
            // The longest is longer than any wait of the server for an agent that says nothing.
            patience_ms: dice.pick(&[30, 3000, 30_000, 90_000]),
            takes_ms: dice.pick(&[0, 3, 40, 400]),
            waits: dice.chance(600),
        }
    }

    /// How it stands in the output.
    pub(crate) fn line(&self) -> String {
        let options =
            OPTIONS.map(|option| format!(r#"{{"optionId":"{option}","name":"{option}"}}"#)).join(",");
        let request = &self.request;
        format!(
            r#"{{"tokenrail":"permission_request","requestId":"{request}","toolName":"Bash","input":{{}},"options":[{options}]}}"#
        )
    }
}
