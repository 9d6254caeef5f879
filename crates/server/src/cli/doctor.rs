//! `tokenrail doctor`: checks programs, folders, database and permissions.

pub(super) mod database;
mod failovers;
mod outside;
mod surroundings;

use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::process::geteuid;
use tokenrail_persistence::is_in_use;
use tokenrail_ports::Abilities;
use tokenrail_runner::{RunWatcher, SupervisorProgram};

use super::client::Client;
use super::screen::{Screen, Style};
use super::{Exit, Failure};
use crate::compose::{self, Means};
use crate::config::{Config, RunnerConfig, StorageConfig, Target};
use crate::token::{self, TokenError};

/// The result of one check.
struct DoctorCheck {
    name: String,
    verdict: Verdict,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Good,
    /// Works, but the reader should know.
    Warning,
    Bad,
}

pub(crate) async fn doctor(config: &Config, screen: &mut Screen) -> Result<Exit, Failure> {
    let folder = folder(&config.data_dir);
    let is_usable = folder.verdict != Verdict::Bad;
    let mut findings = vec![file(config), folder, token(config)];
    findings.extend(database::findings(config).await);
    if config.target == Target::DataFolder && !is_in_use(&config.data_dir) {
        findings.push(surroundings::address(config));
    }
    findings.extend(outside::certificate(config));
    findings.extend(outside::public_url(config));
    findings.extend(server(config).await);
    findings.extend(surroundings::keeper().await);
    match (compose::watcher(config), compose::supervisor(config)) {
        (Ok(watcher), Ok(supervisor)) => {
            findings.push(supervisors(&supervisor));
            if is_usable {
                findings.push(inotify(&config.data_dir, &watcher));
                findings.extend(programs(config, &Means { watcher, supervisor }).await);
            } else {
                // Each of them would fail for the reason that is known already.
                let text = "not checked, because the data folder cannot be used".to_owned();
                findings.push(finding("agents", Verdict::Warning, text));
            }
        }
        (Err(error), _) => findings.push(finding("inotify", Verdict::Bad, error.to_string())),
        (_, Err(error)) => findings.push(finding("supervisors", Verdict::Bad, error.to_string())),
    }
    for (agent, warning) in config.warnings() {
        findings.push(finding(&format!("agents.{agent}"), Verdict::Warning, warning));
    }
    for finding in &findings {
        show(finding, screen);
    }
    let bad = findings.iter().filter(|finding| finding.verdict == Verdict::Bad).count();
    Ok(if bad == 0 { Exit::Completed } else { Exit::Failed })
}

fn show(finding: &DoctorCheck, screen: &mut Screen) {
    let DoctorCheck { name, verdict, text } = finding;
    if screen.json {
        let verdict = match verdict {
            Verdict::Good => "ok",
            Verdict::Warning => "warning",
            Verdict::Bad => "error",
        };
        let line = serde_json::json!({ "check": name, "verdict": verdict, "text": text });
        screen.line(Style::Plain, &line.to_string());
        return;
    }
    let (mark, style) = match verdict {
        Verdict::Good => ("ok      ", Style::Good),
        Verdict::Warning => ("warning ", Style::Dim),
        Verdict::Bad => ("error   ", Style::Bad),
    };
    screen.end_line();
    screen.text(style, mark);
    screen.text(Style::Plain, &format!("{name}: {text}\n"));
}

fn finding(name: &str, verdict: Verdict, text: impl Into<String>) -> DoctorCheck {
    DoctorCheck { name: name.to_owned(), verdict, text: text.into() }
}

fn file(config: &Config) -> DoctorCheck {
    let text = match &config.file {
        Some(path) => path.display().to_string(),
        None => "no file; using the defaults".to_owned(),
    };
    finding("configuration", Verdict::Good, text)
}

fn folder(data_dir: &Path) -> DoctorCheck {
    let shown = data_dir.display();
    match std::fs::metadata(data_dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => finding(
            "data folder",
            Verdict::Warning,
            format!("{shown} does not exist yet; `tokenrail serve` creates it"),
        ),
        Err(error) => {
            let text = format!(
                "{shown} cannot be used ({error}); use a data folder that this user owns, or run the command as the \
                 owner of the folder"
            );
            finding("data folder", Verdict::Bad, text)
        }
        Ok(meta) if !meta.is_dir() => finding(
            "data folder",
            Verdict::Bad,
            format!("{shown} is not a folder; set another data folder with --data-dir"),
        ),
        Ok(meta) if !geteuid().is_root() && meta.uid() != geteuid().as_raw() => {
            let text = format!(
                "{shown} belongs to another user; run the command as that user, or use another data folder"
            );
            finding("data folder", Verdict::Bad, text)
        }
        Ok(meta) if meta.permissions().mode() & 0o077 != 0 => {
            let text = format!("other users can access {shown}; run: chmod 700 {shown}");
            finding("data folder", Verdict::Bad, text)
        }
        Ok(_) => finding("data folder", Verdict::Good, shown.to_string()),
    }
}

fn token(config: &Config) -> DoctorCheck {
    match token::read(&config.data_dir) {
        Ok(_) => finding("token", Verdict::Good, "exists, and only its owner can read it"),
        Err(TokenError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
            finding("token", Verdict::Warning, "does not exist yet; the first start of the server creates it")
        }
        Err(error) => finding("token", Verdict::Bad, error.to_string()),
    }
}

/// The server, and what it has seen of its database.
async fn server(config: &Config) -> Vec<DoctorCheck> {
    let client = match Client::reach(config).await {
        Ok(client) => client,
        Err(error) => return vec![unreachable(config, &error)],
    };
    // The server that answers must accept the folder's token. Otherwise it is the server of another folder.
    if let Err(error) = client.get(&["api", "agents"], &[("limit", "1")]).await {
        return vec![finding("server", Verdict::Bad, error.to_string())];
    }
    let mut findings = vec![finding("server", Verdict::Good, format!("running at {}", client.base()))];
    if let StorageConfig::Postgres(_) = config.storage {
        findings.extend(failovers::seen_by(&client).await);
    }
    findings
}

fn unreachable(config: &Config, error: &Failure) -> DoctorCheck {
    let name = "server";
    if config.target == Target::DataFolder && is_in_use(&config.data_dir) {
        return finding(
            name,
            Verdict::Bad,
            "a server uses the data folder, but does not respond; read its log, or restart it (its agents keep \
             running)",
        );
    }
    match config.target {
        _ if error.exit != Exit::Unreachable => finding(name, Verdict::Bad, error.to_string()),
        Target::DataFolder => finding(name, Verdict::Warning, "not running; start one with: tokenrail serve"),
        Target::Url(_) | Target::Address(_) => finding(name, Verdict::Warning, error.to_string()),
    }
}

/// Whether a server that starts now would be notified of output, or would have to poll.
fn inotify(data_dir: &Path, watcher: &RunWatcher) -> DoctorCheck {
    let name = "inotify";
    let place = if data_dir.is_dir() { data_dir } else { Path::new("/") };
    match watcher.try_out(place) {
        Ok(None) => finding(name, Verdict::Good, "reports new output to the server immediately"),
        Ok(Some(because)) => {
            let text = format!(
                "not available ({because}); the server polls for output every few milliseconds instead, which is \
                 slower"
            );
            finding(name, Verdict::Warning, text)
        }
        Err(error) => finding(name, Verdict::Bad, format!("cannot watch {}: {error}", place.display())),
    }
}

/// The program that would supervise agents if a server started now.
fn supervisors(program: &SupervisorProgram) -> DoctorCheck {
    let name = "supervisors";
    match program.own_because() {
        None => finding(name, Verdict::Good, program.path().display().to_string()),
        Some(because) => {
            let text = format!(
                "tokenrail-supervisor is not used, because {because}; tokenrail supervises agents itself, which \
                 needs more memory"
            );
            finding(name, Verdict::Warning, text)
        }
    }
}

/// What agents of a type can do, as a list of words.
fn abilities(abilities: Abilities) -> String {
    let Abilities { deltas, resume, interrupt, permissions, images } = abilities;
    let words = [
        (deltas, "streaming"),
        (resume, "resume"),
        (interrupt, "interrupt"),
        (permissions, "permissions"),
        (images, "images"),
    ];
    let words: Vec<&str> = words.into_iter().filter(|(can, _)| *can).map(|(_, word)| word).collect();
    format!(
        "supports: {}",
        if words.is_empty() {
            "none of streaming, resume, interrupt, permissions and images".to_owned()
        } else {
            words.join(", ")
        }
    )
}

/// Says that an agent program needs a login, if none of its variables for keys is set.
fn keys(unset: &[String]) -> Option<String> {
    let why = match unset {
        [] => return None,
        [key] => format!("{key} is not set"),
        keys => format!("none of {} is set", keys.join(", ")),
    };
    Some(format!("{why}, so the program needs its own login"))
}

async fn programs(config: &Config, means: &Means) -> Vec<DoctorCheck> {
    let mut findings = Vec::new();
    for (name, agent) in &config.agents {
        let name = format!("agents.{name}");
        let kind = match compose::agent_type(config, agent, means) {
            Ok(kind) => kind,
            Err(error) => {
                findings.push(finding(&name, Verdict::Bad, outside::with_cause(&error)));
                continue;
            }
        };
        let probe = kind.runner.probe().await;
        let what = [probe.program, probe.version, Some(abilities(kind.abilities)), keys(&probe.unset_keys)];
        let what = what.into_iter().flatten().collect::<Vec<_>>().join("; ");
        let needed = config.default_agent.as_deref() == name.strip_prefix("agents.");
        findings.push(match probe.problem.map(|problem| format!("{problem} ({what})")) {
            None => finding(&name, Verdict::Good, what),
            // Only the program or API of the default agent type must work.
            Some(problem)
                if !needed || !matches!(agent.runner, RunnerConfig::Process(_) | RunnerConfig::Http(_)) =>
            {
                finding(&name, Verdict::Warning, problem)
            }
            Some(problem) => finding(&name, Verdict::Bad, problem),
        });
    }
    findings
}
