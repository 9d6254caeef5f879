//! The database of the configuration.

mod health;

use std::io::ErrorKind;
use std::time::Duration;

use tokenrail_persistence::{
    Fault, OpenError, PostgresConfig, PostgresContent, PostgresDiagnosis, Survives, postgres_doctor,
};

use super::outside::with_cause;
use super::{DoctorCheck, Verdict, finding};
use crate::config::{Config, DurabilityMode, PostgresBlock, StorageConfig};
use crate::store::{self, OpenStoreError};

pub(super) async fn findings(config: &Config) -> Vec<DoctorCheck> {
    match &config.storage {
        StorageConfig::Sqlite { .. } => vec![sqlite(config).await],
        StorageConfig::Postgres(block) => postgres(block, config).await,
    }
}

/// The server of the database, what its data survives, and settings with which it loses data.
async fn postgres(block: &PostgresBlock, config: &Config) -> Vec<DoctorCheck> {
    let beat = Duration::from_secs(config.cluster.beat_s);
    let found = match store::postgres_config(block, &config.limits) {
        Ok(store) => {
            let store = PostgresConfig { server_file: Some(store::server_file(&config.data_dir)), ..store };
            postgres_doctor(store, beat).await.map_err(OpenStoreError::from)
        }
        Err(error) => Err(error),
    };
    let diagnosis = match found {
        Ok(diagnosis) => diagnosis,
        Err(error) => return vec![finding("database", Verdict::Bad, with_cause(&error))],
    };
    let PostgresDiagnosis {
        hosts,
        version,
        timeline,
        fsync,
        full_page_writes,
        checksums,
        survives,
        health,
        nodes,
        content,
    } = diagnosis;
    let timeline = timeline.map(|timeline| format!(", timeline {timeline}")).unwrap_or_default();
    let content = match content {
        Some(PostgresContent { agents, events }) => format!("agents: {agents}, events: {events}"),
        None => "empty; the first start of the server creates the tables".to_owned(),
    };
    let text = format!("PostgreSQL {version} at {hosts}{timeline}; {content}");
    let mut findings = vec![finding("database", Verdict::Good, text)];
    findings.push(durability(block.durability, survives));
    findings.extend(settings(fsync, full_page_writes, checksums));
    findings.extend(health::findings(&health, &version));
    findings.extend(nodes.iter().map(health::node));
    findings.extend(health::agent_types(&nodes));
    findings
}

/// Settings of the server with which data is lost, or its loss is not noticed.
fn settings(fsync: bool, full_page_writes: bool, checksums: bool) -> impl Iterator<Item = DoctorCheck> {
    let problems = [
        (fsync, Verdict::Bad, "fsync is off: a power loss can destroy the whole database; set fsync = on"),
        (
            full_page_writes,
            Verdict::Bad,
            "full_page_writes is off: a power loss can destroy pages; set full_page_writes = on",
        ),
        (
            checksums,
            Verdict::Warning,
            "data checksums are off: damage by the disk is not noticed; stop PostgreSQL and run: pg_checksums --enable",
        ),
    ];
    let problems = problems.into_iter().filter(|(is_on, ..)| !is_on);
    problems.map(|(_, verdict, text)| finding("database settings", verdict, text))
}

fn durability(wanted: DurabilityMode, survives: Survives) -> DoctorCheck {
    let (verdict, text) = match (wanted, survives) {
        (_, Survives::OneMachine) => {
            (Verdict::Good, "survives the loss of one machine: a synchronous standby confirms each commit")
        }
        (DurabilityMode::Primary, Survives::NoMachine) => (
            Verdict::Warning,
            "does not survive the loss of a machine: with storage.durability = \"primary\", commits do not wait for \
             a standby",
        ),
        (DurabilityMode::Auto, Survives::NoMachine) => (
            Verdict::Warning,
            "does not survive the loss of a machine: there is no synchronous standby; to have one, set \
             synchronous_standby_names on the database server",
        ),
        (DurabilityMode::Replicated, Survives::NoMachine) => (
            Verdict::Bad,
            "does not survive the loss of a machine: storage.durability = \"replicated\" requires a synchronous \
             standby; set synchronous_standby_names on the database server",
        ),
    };
    finding("durability", verdict, text)
}

async fn sqlite(config: &Config) -> DoctorCheck {
    let name = "database";
    let folder = config.data_dir.clone();
    match tokio::task::spawn_blocking(move || tokenrail_persistence::sqlite_doctor(&folder)).await {
        Ok(Ok(report)) if report.faults.is_empty() => {
            finding(name, Verdict::Good, format!("agents: {}, events: {}", report.agents, report.events))
        }
        Ok(Ok(report)) => {
            let faults: Vec<_> = report.faults.iter().map(violation).collect();
            finding(name, Verdict::Bad, format!("corrupt ({}); restore a backup", faults.join("; ")))
        }
        Ok(Err(OpenError::Io { source, .. })) if source.kind() == ErrorKind::NotFound => {
            finding(name, Verdict::Warning, "does not exist yet; the first start of the server creates it")
        }
        Ok(Err(error @ OpenError::OlderSchema { .. })) => finding(name, Verdict::Warning, error.to_string()),
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

#[cfg(test)]
mod tests;
