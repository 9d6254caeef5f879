//! Lists the configured agent types, and whether they can be started.

use std::collections::BTreeMap;

use futures_util::{StreamExt as _, stream};
use tokenrail_ports::{Abilities, Probe};

use crate::outside::AgentType;
use crate::service::AgentService;

/// How many agent types are probed at the same time. Each probe starts a program.
const PROBES_AT_ONCE: usize = 4;

/// A configured agent type, and whether it can be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeInfo {
    pub name: String,
    pub runner: String,
    pub format: String,
    pub abilities: Abilities,
    pub default: bool,
    pub probe: Probe,
}

impl AgentService {
    /// The names of the configured agent types. Starts no program, so it may be called for each typed key.
    pub fn type_names(&self) -> impl Iterator<Item = &str> {
        self.core.outside.types.listed.keys().map(String::as_str)
    }

    /// The configured agent types, and whether they could be started now.
    pub async fn types(&self) -> Vec<TypeInfo> {
        let types: &BTreeMap<String, AgentType> = &self.core.outside.types.listed;
        let infos = types.iter().map(async |(name, kind)| TypeInfo {
            name: name.clone(),
            runner: kind.runner_name.clone(),
            format: kind.format.clone(),
            abilities: kind.abilities,
            default: self.core.outside.default_type.as_ref() == Some(name),
            probe: kind.runner.probe().await,
        });
        stream::iter(infos).buffered(PROBES_AT_ONCE).collect().await
    }
}
