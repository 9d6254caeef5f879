//! Pins the load generator to one core, and the server and its agents to another. So neither takes time from the other,
//! and every server gets the same share.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::Failure;

/// The cores of a measurement. When it is dropped, this process may use all of its cores again.
pub(crate) struct Cores {
    all: String,
    generator: usize,
    server: usize,
}

impl Cores {
    /// Moves this process to a core of its own. `None` if there is only one.
    pub(crate) fn divide() -> Result<Option<Self>, Failure> {
        let status = std::fs::read_to_string("/proc/self/status")?;
        let all = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or_default();
        let cores = listed(all.trim());
        let (Some(server), Some(generator)) = (cores.first(), cores.last()) else { return Ok(None) };
        if server == generator {
            return Ok(None);
        }
        let cores = Self { all: all.trim().to_owned(), generator: *generator, server: *server };
        move_this_process(&cores.generator.to_string())?;
        Ok(Some(cores))
    }

    pub(crate) fn describe(cores: Option<&Self>) -> String {
        match cores {
            Some(Self { generator, server, .. }) => {
                format!("load generator on core {generator}, server and agents on core {server}")
            }
            None => "one core for all: the load generator takes time from the server".to_owned(),
        }
    }

    /// The command that runs a program on the core for servers.
    pub(crate) fn command(cores: Option<&Self>, program: &Path) -> Command {
        let Some(Self { server, .. }) = cores else { return Command::new(program) };
        let mut command = Command::new("taskset");
        command.args(["--cpu-list", &server.to_string()]).arg(program);
        command
    }
}

impl Drop for Cores {
    fn drop(&mut self) {
        // If that fails, the following parts are measured on one core. They state how many cores there are.
        let _ = move_this_process(&self.all);
    }
}

/// Moves all threads of this process.
fn move_this_process(list: &str) -> Result<(), Failure> {
    let mut taskset = Command::new("taskset");
    taskset.args(["--all-tasks", "--cpu-list", "--pid", list, &std::process::id().to_string()]);
    let status = taskset.stdout(Stdio::null()).status();
    match status.map_err(|error| format!("taskset is missing, install util-linux ({error})"))? {
        status if status.success() => Ok(()),
        status => Err(format!("taskset: {status}").into()),
    }
}

/// The cores of a list as the kernel writes it: `0-2,5`.
fn listed(list: &str) -> Vec<usize> {
    let ranges = list.split(',').filter_map(|range| {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        Some(from.parse::<usize>().ok()?..=to.parse().ok()?)
    });
    ranges.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cores_are_read_as_the_kernel_writes_them() {
        assert_eq!(listed("0-2,5"), [0, 1, 2, 5]);
        assert_eq!(listed("3"), [3]);
        assert!(listed("").is_empty());
    }
}
