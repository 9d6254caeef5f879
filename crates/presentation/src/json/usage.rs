//! Token usage as agents print it.

use serde::Deserialize;
use tokenrail_domain::JsonText;

/// The tokens of one or several model requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TokenUsage {
    /// All tokens of the prompt, those from the cache included.
    pub(crate) input: u64,
    pub(crate) output: u64,
    /// What was read from the cache.
    pub(crate) cached: u64,
    /// What was written to the cache.
    pub(crate) cache_written: u64,
}

#[derive(Default, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_field_names, reason = "the names are those of the agents")]
struct AgentUsage {
    #[serde(alias = "prompt_tokens")]
    input_tokens: u64,
    #[serde(alias = "completion_tokens")]
    output_tokens: u64,
    cache_creation_input_tokens: u64,
    cache_read_input_tokens: u64,
}

impl TokenUsage {
    /// Adds the usage that an agent reports, as far as it is understood.
    pub(crate) fn add(&mut self, usage: &JsonText) {
        let Ok(usage) = serde_json::from_str::<AgentUsage>(usage.as_str()) else { return };
        let (cached, written) = (usage.cache_read_input_tokens, usage.cache_creation_input_tokens);
        let add = |to: &mut u64, more: u64| *to = to.saturating_add(more);
        add(&mut self.cached, cached);
        add(&mut self.cache_written, written);
        add(&mut self.input, usage.input_tokens.saturating_add(cached).saturating_add(written));
        add(&mut self.output, usage.output_tokens);
    }

    pub(crate) fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }
}
