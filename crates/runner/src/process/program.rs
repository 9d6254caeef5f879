//! Finds the agent program and asks for its version.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use std::{env, io};

use rustix::fs::{Access, access};
use tokenrail_ports::{Probe, RunnerError};
use tokio::io::AsyncReadExt;
use tokio::process::Command;

use super::ProcessConfig;

/// The absolute path of the program to run.
pub(super) fn resolve(program: &str) -> Result<PathBuf, RunnerError> {
    let missing = || RunnerError::ProgramMissing { program: program.to_owned() };
    let refused = || RunnerError::NotExecutable { program: program.to_owned() };
    if program.contains('/') {
        // A relative path would mean a different program in each working directory.
        let path = PathBuf::from(program);
        return match path.is_absolute() && path.exists() {
            false => Err(missing()),
            true if is_executable(&path) => Ok(path),
            true => Err(refused()),
        };
    }
    let folders = env::var_os("PATH").unwrap_or_default();
    let candidates = env::split_paths(&folders).filter(|folder| folder.is_absolute());
    let (executable, others): (Vec<_>, Vec<_>) = candidates
        .map(|folder| folder.join(program))
        .filter(|path| path.is_file())
        .partition(|path| is_executable(path));
    match executable.into_iter().next() {
        Some(path) => Ok(path),
        None if others.is_empty() => Err(missing()),
        None => Err(refused()),
    }
}

fn is_executable(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}

/// Checks the agent's working directory.
pub(super) fn check_cwd(cwd: &Path) -> Result<(), RunnerError> {
    if cwd.is_absolute() && cwd.is_dir() && access(cwd, Access::EXEC_OK).is_ok() {
        Ok(())
    } else {
        Err(RunnerError::CwdUnusable { cwd: cwd.to_owned() })
    }
}

/// The environment of the agent program: the fixed values, and the variables that are passed on.
pub(super) fn environment(config: &ProcessConfig) -> Vec<(String, OsString)> {
    let passed = config.pass_env.iter().filter(|name| !config.env.contains_key(*name));
    let passed = passed.filter_map(|name| Some((name.clone(), env::var_os(name)?)));
    let fixed = config.env.iter().map(|(name, value)| (name.clone(), value.into()));
    passed.chain(fixed).collect()
}

/// Finds the program and asks for its version.
pub(super) async fn probe(config: &ProcessConfig) -> Probe {
    let path = match resolve(&config.program) {
        Ok(path) => path,
        Err(error) => return Probe { problem: Some(error.to_string()), ..Probe::default() },
    };
    let program = Some(path.display().to_string());
    let timeout = Duration::from_millis(config.limits.probe_timeout_ms);
    match tokio::time::timeout(timeout, ask_version(config, &path)).await {
        Ok(Ok(version)) => Probe { program, version, unset_keys: unset_keys(config), ..Probe::default() },
        Ok(Err(error)) => {
            let problem = Some(format!("cannot start the program {:?}: {error}", config.program));
            Probe { program, problem, ..Probe::default() }
        }
        // A timeout is not a problem: not every program prints a version, and a slow one can still run.
        Err(_) => Probe { program, unset_keys: unset_keys(config), ..Probe::default() },
    }
}

/// The endings of the names of variables that hold a key.
const KEYS: [&str; 2] = ["_KEY", "_TOKEN"];

/// The variables that are passed on, look like keys and are not set. Empty if one key is set: one is enough.
fn unset_keys(config: &ProcessConfig) -> Vec<String> {
    let is_key = |name: &String| KEYS.iter().any(|end| name.ends_with(end));
    if environment(config).iter().any(|(name, value)| is_key(name) && !value.is_empty()) {
        return Vec::new();
    }
    config.pass_env.iter().filter(|name| is_key(name)).cloned().collect()
}

async fn ask_version(config: &ProcessConfig, program: &Path) -> io::Result<Option<String>> {
    let mut child = Command::new(program)
        .arg("--version")
        .env_clear()
        .envs(environment(config))
        .current_dir(&config.runs)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let mut said = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(config.limits.probe_bytes as u64).read_to_end(&mut said).await?;
    }
    if !child.wait().await?.success() {
        // The output of a failed command is no version.
        return Ok(None);
    }
    let said = String::from_utf8_lossy(&said);
    Ok(said.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned))
}
