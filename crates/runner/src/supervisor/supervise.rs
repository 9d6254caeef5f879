//! What happens in a supervisor, from start to end.

use std::future::pending;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::thread;

use rustix::fs::Mode;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, kill_process_group, set_child_subreaper,
    setsid, umask, wait,
};
use tokenrail_ports::is_disk_full;
use tokio::net::unix::pipe;
use tokio::runtime;
use tokio::signal::unix::{Signal as SignalStream, SignalKind, signal};
use tokio::time::{Duration, Instant, sleep_until};

use super::control::{Cancel, Control};
use super::exec::session_gives_way;
use super::limits::LimitWatch;
use super::output::{OutputCopier, WRITE_AGAIN};
use super::stderr::StderrKeeper;
use super::ticks::Ticks;
use crate::run_folder::{ExecFailure, ExecOrder, ExitRecord, RunFolder, SupervisorRecord, Unkept};

/// What is read of standard error at once. It is on the stack, which each supervisor has for itself.
const STDERR_READ_BYTES: usize = 4 << 10;

/// Runs the agent that the run folder orders, and stays until no process of it is left.
///
/// The body of the internal command `supervise <run folder>`: to be called first thing in `main`, where there is
/// no async runtime yet and one thread only. Everything worth knowing is in the run folder afterwards.
pub(super) fn supervise(run_folder: &Path) -> ExitCode {
    let folder = RunFolder::at(run_folder);
    let (patience, ended) = match order(&folder) {
        Ok(order) => (Duration::from_millis(order.exit_patience_ms), run(&folder, order)),
        Err(error) => (Duration::ZERO, Err(error)),
    };
    let failure = |error| ExitRecord { failure: Some(ExecFailure::from(&error)), ..ExitRecord::default() };
    match tell(&folder, &ended.unwrap_or_else(failure), patience) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Writes down how the run has ended. Where the disk is so full that even the room that was kept is no use, as on
/// disks that never write to the same place twice, it waits for more.
fn tell(folder: &RunFolder, exit: &ExitRecord, patience: Duration) -> io::Result<()> {
    let until = Instant::now() + patience;
    loop {
        match folder.write_exit(exit) {
            Err(error) if is_disk_full(&error) && Instant::now() < until => thread::sleep(WRITE_AGAIN),
            told => return told,
        }
    }
}

fn order(folder: &RunFolder) -> io::Result<ExecOrder> {
    let missing = || {
        io::Error::new(ErrorKind::NotFound, "the file that says what to run is missing from the run folder")
    };
    folder.read(RunFolder::ORDER)?.ok_or_else(missing)
}

fn run(folder: &RunFolder, order: ExecOrder) -> io::Result<ExitRecord> {
    // It fails for the leader of a process group: started by hand, this process is one of its own already.
    let _ = setsid();
    // If the server needs the processor, output waits in the pipe. Within its session this process keeps its priority.
    session_gives_way(i32::try_from(order.agent_nice).unwrap_or(i32::MAX));
    set_child_subreaper(Some(getpid()))?;
    // For the agent too.
    umask(Mode::RWXG | Mode::RWXO);
    // One thread, and it stays: the agent is killed when the thread that has started it ends.
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    // The runtime moves what it is given, and each move would take as much of the stack, which stays.
    let supervised = Box::pin(async { Supervisor::start(folder, order)?.run(folder).await });
    runtime.block_on(supervised)
}

/// A run, seen by its supervisor.
pub(super) struct Supervisor {
    pub(super) order: ExecOrder,
    pub(super) agent: Pid,
    /// How the agent has ended.
    ended: Option<WaitStatus>,
    children: SignalStream,
    control: Control,
    pub(super) watch: LimitWatch,
    looks: Ticks,
    output: OutputCopier,
    /// The agent's output cannot be written any more.
    output_stuck: bool,
    /// None when it has been read to its end.
    stderr: Option<pipe::Receiver>,
    kept: StderrKeeper,
    /// Held so that these signals do not end the supervisor: a service manager sends them to everybody when it
    /// stops the server, and the agent's end is still to be recorded. Where files may not grow beyond a limit of the
    /// system, a write fails then instead of killing the supervisor.
    _ignored: [SignalStream; 4],
}

/// What a supervisor waits for.
pub(super) enum Happening {
    /// A process has ended, perhaps the agent.
    Child,
    Cancel(Cancel),
    /// The run is over one of its limits, or its output cannot be kept: nothing is left to be waited for.
    MustEnd,
    Deadline,
}

impl Supervisor {
    fn start(folder: &RunFolder, order: ExecOrder) -> io::Result<Self> {
        let children = signal(SignalKind::child())?;
        let ignored = [
            signal(SignalKind::hangup())?,
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::from_raw(Signal::XFSZ.as_raw()))?,
        ];
        let control = Control::open(&folder.control())?;
        let looks = Ticks::every(Duration::from_millis(order.look_ms.max(1)))?;
        let kept = StderrKeeper::new(folder.stderr_to_write()?, order.stderr_bytes);
        let (printed, stdout) = io::pipe()?;
        let patience = Duration::from_millis(order.full_disk_wait_ms);
        let output = OutputCopier::start(printed, folder.spool_to_write()?, patience)?;
        folder.write(RunFolder::SUPERVISOR, &SupervisorRecord::own()?)?;
        // This very program, even if an upgrade has put another one in its place.
        let mut stage = Command::new("/proc/self/exe")
            .arg0("tokenrail")
            .args(["supervise", "--exec"])
            .arg(folder.path())
            .env_clear()
            .stdin(folder.stdin()?)
            .stdout(stdout)
            .stderr(Stdio::piped())
            .spawn()?;
        let stderr = stage.stderr.take().map(|stderr| pipe::Receiver::from_owned_fd(OwnedFd::from(stderr)));
        Ok(Self {
            watch: LimitWatch::new(&order),
            looks,
            order,
            agent: Pid::from_child(&stage),
            ended: None,
            children,
            control,
            output,
            output_stuck: false,
            stderr: stderr.transpose()?,
            kept,
            _ignored: ignored,
        })
    }

    async fn run(mut self, folder: &RunFolder) -> io::Result<ExitRecord> {
        let cancel = self.until_end_or_stop().await;
        // At once: what else ends with the run may give room back.
        let disk_full = folder.disk_full();
        if let Some(cancel) = cancel {
            self.stop_politely(cancel).await;
        }
        let kill = cancel.map_or(Duration::from_millis(self.order.kill_grace_ms), |cancel| cancel.kill);
        let swept = self.sweep(kill).await?;
        let unkept = self.finish_output(cancel.is_some()).await;
        self.read_stderr();
        // On a full disk a part of it is lost: how the run ended is worth more.
        let _ = self.kept.finish();
        let status = self.ended;
        Ok(ExitRecord {
            code: status.and_then(WaitStatus::exit_status),
            signal: status.and_then(WaitStatus::terminating_signal),
            reaped: swept.reaped,
            left: swept.left,
            cancelled: cancel.is_some(),
            failure: folder.read(RunFolder::EXEC)?,
            disk_full,
            unkept,
            over_limit: self.watch.over(),
            emptied_at: None,
        })
    }

    pub(super) fn agent_has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Whether the run is to be ended at once.
    pub(super) fn must_end(&self) -> bool {
        self.watch.over().is_some() || self.output_stuck
    }

    /// Waits for the end of the agent, or a cancel, or until the run must end; gives the cancel.
    async fn until_end_or_stop(&mut self) -> Option<Cancel> {
        while !self.agent_has_ended() && !self.must_end() {
            if let Happening::Cancel(cancel) = self.wait(None).await {
                return Some(cancel);
            }
        }
        None
    }

    /// Gives the agent the chance to end by itself.
    async fn stop_politely(&mut self, cancel: Cancel) {
        let until = Instant::now() + cancel.grace;
        if self.order.interrupt {
            self.signal_agent(Signal::INT);
            self.until_agent_ends(Instant::now() + cancel.grace / 2).await;
        }
        if !self.agent_has_ended() {
            self.signal_agent(Signal::TERM);
            self.until_agent_ends(until).await;
        }
    }

    /// The whole group: some agents are a launcher, which passes no signal on, and the real program.
    fn signal_agent(&self, signal: Signal) {
        if kill_process_group(self.agent, signal).is_err() {
            // It has no group of its own yet, or has just ended.
            let _ = kill_process(self.agent, signal);
        }
    }

    async fn until_agent_ends(&mut self, deadline: Instant) {
        while !self.agent_has_ended() {
            if let Happening::Deadline | Happening::MustEnd = self.wait(Some(deadline)).await {
                return;
            }
        }
    }

    /// Waits until all that was printed is in the spool; says what is not. No process of the run is left by now. Where
    /// somebody wants the end, nothing waits for room on a full disk any more.
    async fn finish_output(&mut self, cancelled: bool) -> Option<Unkept> {
        self.output.finish();
        if cancelled || self.must_end() {
            self.output.give_up();
        }
        loop {
            tokio::select! {
                unkept = self.output.ended() => return unkept,
                Ok(()) = self.control.readable() => {
                    if self.control.read().cancel.is_some() {
                        self.output.give_up();
                    }
                }
            }
        }
    }

    /// Waits for one thing to happen, and reads standard error meanwhile.
    pub(super) async fn wait(&mut self, deadline: Option<Instant>) -> Happening {
        loop {
            tokio::select! {
                _ = self.children.recv() => {
                    self.reap();
                    return Happening::Child;
                }
                Ok(()) = self.control.readable() => {
                    let told = self.control.read();
                    if let Some(cancel) = told.cancel {
                        return Happening::Cancel(cancel);
                    }
                    if told.look && self.is_over_a_limit() {
                        return Happening::MustEnd;
                    }
                }
                () = self.looks.tick(), if self.watch.looks() => {
                    if self.is_over_a_limit() {
                        return Happening::MustEnd;
                    }
                }
                () = self.output.stuck(), if !self.output_stuck => {
                    self.output_stuck = true;
                    return Happening::MustEnd;
                }
                Some(Ok(())) = readable(self.stderr.as_ref()), if self.stderr.is_some() => self.read_stderr(),
                () = passed(deadline) => return Happening::Deadline,
            }
        }
    }

    /// Looks now, and decides when to look again.
    fn is_over_a_limit(&mut self) -> bool {
        let is_over = self.watch.looks() && self.watch.look();
        // If it cannot be set, the looks go on as before.
        let _ = self.looks.set(self.watch.pause());
        is_over
    }

    /// Takes the statuses of all children that have ended: the agent's own, and those of its descendants, which
    /// come to the subreaper when their parent has ended.
    fn reap(&mut self) {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            if pid == self.agent {
                self.ended = Some(status);
            }
        }
    }

    fn read_stderr(&mut self) {
        let mut bytes = [0; STDERR_READ_BYTES];
        while let Some(stderr) = &self.stderr {
            match stderr.try_read(&mut bytes) {
                Ok(0) => self.stderr = None,
                Ok(read) => self.kept.keep(&bytes[..read]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // There is nothing more to be had.
                Err(_) => self.stderr = None,
            }
        }
    }
}

async fn passed(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}

async fn readable(pipe: Option<&pipe::Receiver>) -> Option<io::Result<()>> {
    Some(pipe?.readable().await)
}
