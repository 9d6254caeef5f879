//! The database of the configuration.

use std::io::ErrorKind;

use tokenrail_persistence::{Fault, OpenError};

use super::{Finding, Verdict, finding};
use crate::config::{Config, StorageConfig};
use crate::store::OpenStoreError;

pub(super) async fn findings(config: &Config) -> Vec<Finding> {
    match &config.storage {
        StorageConfig::Sqlite { .. } => vec![sqlite(config).await],
        StorageConfig::Postgres(_) => {
            vec![finding("database", Verdict::Bad, OpenStoreError::Postgres.to_string())]
        }
    }
}

async fn sqlite(config: &Config) -> Finding {
    let name = "database";
    let folder = config.data_dir.clone();
    match tokio::task::spawn_blocking(move || tokenrail_persistence::doctor(&folder)).await {
        Ok(Ok(report)) if report.faults.is_empty() => {
            finding(name, Verdict::Good, format!("agents: {}, events: {}", report.agents, report.events))
        }
        Ok(Ok(report)) => {
            let faults: Vec<_> = report.faults.iter().map(violation).collect();
            finding(name, Verdict::Bad, format!("corrupt ({}); restore a backup", faults.join("; ")))
        }
        Ok(Err(OpenError::Io { source, .. })) if source.kind() == ErrorKind::NotFound => {
            finding(name, Verdict::Remark, "does not exist yet; the first start of the server creates it")
        }
        Ok(Err(error @ OpenError::OlderSchema { .. })) => finding(name, Verdict::Remark, error.to_string()),
        Ok(Err(error)) => finding(name, Verdict::Bad, error.to_string()),
        Err(error) => finding(name, Verdict::Bad, error.to_string()),
    }
}

/// A fault of the database, in words.
pub(crate) fn violation(fault: &Fault) -> String {
    let Fault { rule, agent, detail } = fault;
    match agent {
        Some(agent) => format!("the data of agent {agent} breaks the rule \"{rule}\": {detail}"),
        None => format!("the database breaks the rule \"{rule}\": {detail}"),
    }
}
