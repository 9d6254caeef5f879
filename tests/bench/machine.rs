//! What `/proc` says about the machine and about one process.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

use crate::Failure;

/// Microseconds of the monotonic clock, which all processes of this machine share.
pub(crate) fn now_us() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1000
}

/// Raises the limit of open files to its maximum, for this process and the servers that it starts.
pub(crate) fn allow_many_descriptors() -> Result<(), Failure> {
    let limit = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?)
}

/// Describes the machine, the program and the time of the measurement.
pub(crate) fn describe(server: &Path) -> Result<String, Failure> {
    let cpus = fs::read_to_string("/proc/cpuinfo")?;
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    let memory = fs::read_to_string("/proc/meminfo")?;
    let memory_kib = field(&memory, "MemTotal:").unwrap_or_default();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let load = fs::read_to_string("/proc/loadavg")?;
    let said = |program: &Path, arguments: &[&str]| match Command::new(program).args(arguments).output() {
        Ok(output) => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        Err(_) => "unknown".to_owned(),
    };
    Ok(format!(
        "version  {}\ndate     {}\nmachine  {} cores, {}, {} GiB\nkernel   Linux {}\nrustc    {}\nload     {}",
        said(server, &["--version"]),
        said(Path::new("date"), &["-u", "+%F %R UTC"]),
        std::thread::available_parallelism()?,
        model.unwrap_or("unknown processor"),
        memory_kib >> 20,
        kernel.trim(),
        said(Path::new("rustc"), &["--version"]),
        load.trim(),
    ))
}

/// The unit of times in `/proc`: Linux always reports hundredths of a second.
const TICKS_PER_SECOND: f64 = 100.0;

/// The resident memory of a process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resident {
    pub(crate) now_kib: u64,
    pub(crate) peak_kib: u64,
}

impl Resident {
    pub(crate) fn of(pid: u32) -> Result<Self, Failure> {
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let value = |name| field(&status, name).ok_or("the kernel does not tell how much memory is held");
        Ok(Self { now_kib: value("VmRSS:")?, peak_kib: value("VmHWM:")? })
    }
}

/// The memory of a process in KiB, with its proportional share of shared pages (PSS). Reading it for the processes of
/// other users requires root.
pub(crate) fn share_kib(pid: u32) -> Result<u64, Failure> {
    let sizes = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    field(&sizes, "Pss:").ok_or_else(|| "the kernel does not tell how much memory is shared".into())
}

/// The child processes of a process that have not ended.
pub(crate) fn children(pid: u32) -> Result<Vec<u32>, Failure> {
    let mut found = Vec::new();
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let children = fs::read_to_string(task?.path().join("children"))?;
        found.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
    }
    Ok(found)
}

/// The processor seconds of all threads of a process, including threads that have ended.
pub(crate) fn processor_seconds(pid: u32) -> Result<f64, Failure> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The part before is the program name in parentheses, which may contain anything.
    let (_, fields) = stat.rsplit_once(')').ok_or("a process without a state")?;
    let ticks: Vec<f64> =
        fields.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse().ok()).collect();
    Ok(ticks.iter().sum::<f64>() / TICKS_PER_SECOND)
}

pub(crate) fn threads(pid: u32) -> Result<usize, Failure> {
    Ok(fs::read_dir(format!("/proc/{pid}/task"))?.count())
}

/// The average number of processes that wanted to run in the last minute.
pub(crate) fn load() -> Result<String, Failure> {
    let load = fs::read_to_string("/proc/loadavg")?;
    Ok(load.split_whitespace().next().unwrap_or_default().to_owned())
}

fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok())
}

/// The processor time of the threads of a process, by thread name.
#[derive(Debug, Default)]
pub(crate) struct CpuTime(BTreeMap<String, Duration>);

impl CpuTime {
    pub(crate) fn of(pid: u32) -> Result<Self, Failure> {
        let mut times = BTreeMap::<String, Duration>::new();
        for task in fs::read_dir(format!("/proc/{pid}/task"))? {
            let task = task?.path();
            // A thread may end while the list is read.
            let (Ok(name), Ok(stat)) =
                (fs::read_to_string(task.join("comm")), fs::read_to_string(task.join("schedstat")))
            else {
                continue;
            };
            let ran = stat.split_whitespace().next().and_then(|text| text.parse().ok()).unwrap_or_default();
            *times.entry(name.trim().to_owned()).or_default() += Duration::from_nanos(ran);
        }
        Ok(Self(times))
    }

    /// The time that was added since `before`.
    pub(crate) fn since(mut self, before: &Self) -> Self {
        for (name, time) in &mut self.0 {
            *time = time.saturating_sub(before.0.get(name).copied().unwrap_or_default());
        }
        self
    }

    pub(crate) fn total(&self) -> Duration {
        self.0.values().sum()
    }

    /// The threads that ran longest, in microseconds per event.
    pub(crate) fn per_event(&self, events: u64) -> String {
        let mut threads: Vec<_> = self.0.iter().collect();
        threads.sort_by_key(|(_, time)| std::cmp::Reverse(**time));
        let each = |time: Duration| time.as_secs_f64() * 1e6 / events as f64;
        let shown = threads.iter().take(5).map(|(name, time)| format!("{name} {:.2}", each(**time)));
        shown.collect::<Vec<_>>().join(", ")
    }
}
