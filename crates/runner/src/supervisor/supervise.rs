//! The life of a supervisor, from start to end.

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
use tokio::time::{Duration, Instant};

use super::control::Control;
use super::exec::session_gives_way;
use super::limit_watch::LimitWatch;
use super::output::{OutputCopier, WRITE_AGAIN};
use super::stderr::StderrKeeper;
use super::ticks::Ticks;
use crate::deadline::passed;
use crate::run_folder::{
    CancelLine, ExecOrder, ExitRecord, RunFailure, RunFolder, SUPERVISE, SupervisorRecord, THIS_PROGRAM,
    Unkept,
};

/// How much of standard error is read at once. The buffer is on the stack, and each supervisor has its own.
const STDERR_READ_BYTES: usize = 4 << 10;

/// Runs the agent that the run folder orders, and stays until no process of the run is left, or until the time to end
/// them is up.
///
/// The body of the internal command `supervise <run folder>`. Must be called first in `main`, before an async runtime
/// or a second thread exists. All results are in the run folder.
pub(super) fn supervise(run_folder: &Path) -> ExitCode {
    let folder = RunFolder::at(run_folder);
    let (patience, ended) = match folder.order() {
        Ok(order) => (Duration::from_millis(order.exit_patience_ms), run(&folder, order)),
        Err(error) => (Duration::ZERO, Err(error)),
    };
    let failure = |error| ExitRecord { failure: Some(RunFailure::from(&error)), ..ExitRecord::default() };
    match record_exit(&folder, &ended.unwrap_or_else(failure), patience) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Records how the run ended. The next step is in the server: the watcher (`process/watch`) sees `exit.json`, and
/// `ProcessRun::look` (`process/run/spool.rs`) reads it for `ProcessRun::next`.
///
/// If the disk is full and even the reserved space is no use, as on file systems that never write to the same place
/// twice, it waits for free space.
fn record_exit(folder: &RunFolder, exit: &ExitRecord, patience: Duration) -> io::Result<()> {
    let until = Instant::now() + patience;
    loop {
        match folder.write_exit(exit) {
            Err(error) if is_disk_full(&error) && Instant::now() < until => thread::sleep(WRITE_AGAIN),
            told => return told,
        }
    }
}

fn run(folder: &RunFolder, order: ExecOrder) -> io::Result<ExitRecord> {
    // Fails if this process leads a group, as when a shell has started it. That is harmless.
    let _ = setsid();
    // Lowers the session's priority below the server's: if the processor is busy, output waits in the pipe, and the
    // server goes first. This process keeps its priority within the session.
    session_gives_way(i32::try_from(order.agent_nice).unwrap_or(i32::MAX));
    set_child_subreaper(Some(getpid()))?;
    // The agent inherits the umask: its files are private to the user.
    umask(Mode::RWXG | Mode::RWXO);
    // The agent must be started on this thread: the kernel kills it when the thread that has started it ends.
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    // Boxed, because the runtime moves the future. Each move would use its size of stack, which is never given back.
    let supervised = Box::pin(async { Supervisor::start(folder, order)?.run(folder).await });
    runtime.block_on(supervised)
}

/// A run, seen by its supervisor.
pub(super) struct Supervisor {
    pub(super) order: ExecOrder,
    /// The agent. If it is interactive, the `converse` process, which starts the agent.
    pub(super) child: Pid,
    /// How the child ended.
    ended: Option<WaitStatus>,
    children: SignalStream,
    control: Control,
    /// A cancel has come. One that comes after `until_end_or_stop` does not shorten the sweep. It only ends the wait
    /// for space on a full disk.
    cancelled: bool,
    pub(super) watch: LimitWatch,
    check_timer: Ticks,
    output: OutputCopier,
    /// The agent's output cannot be written any more.
    output_stuck: bool,
    /// `None` once it has been read to its end.
    stderr: Option<pipe::Receiver>,
    kept: StderrKeeper,
    /// Held so that these signals do not end the supervisor. A service manager sends them to all processes when it
    /// stops the server, and the agent's end must still be recorded. With SIGXFSZ held, a write beyond a file size
    /// limit of the system fails instead of killing the supervisor.
    _ignored: [SignalStream; 4],
}

/// The events that a supervisor waits for.
pub(super) enum Happening {
    /// A process has ended, perhaps the agent.
    Child,
    Cancel(CancelLine),
    /// The run is over one of its limits, or its output cannot be saved: it must be ended at once.
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
        let check_timer = Ticks::every(Duration::from_millis(order.look_ms.max(1)))?;
        let kept = StderrKeeper::new(folder.stderr_to_write()?, order.stderr_bytes);
        let (printed, stdout) = io::pipe()?;
        let patience = Duration::from_millis(order.full_disk_wait_ms);
        let output = OutputCopier::start(printed, folder.spool_to_write()?, patience)?;
        // Before the spawn: the exec stage compares this record with its parent.
        folder.write(RunFolder::SUPERVISOR, &SupervisorRecord::own()?)?;
        // The next step is `exec::exec_stage`, which `command` calls in the new process.
        let mut stage = Command::new(THIS_PROGRAM)
            .arg0("tokenrail")
            .args([SUPERVISE, "--exec"])
            .arg(folder.path())
            .env_clear()
            .stdin(folder.stdin()?)
            .stdout(stdout)
            .stderr(Stdio::piped())
            .spawn()?;
        let stderr = stage.stderr.take().map(|stderr| pipe::Receiver::from_owned_fd(OwnedFd::from(stderr)));
        Ok(Self {
            watch: LimitWatch::new(&order),
            check_timer,
            order,
            child: Pid::from_child(&stage),
            ended: None,
            children,
            control,
            cancelled: false,
            output,
            output_stuck: false,
            stderr: stderr.transpose()?,
            kept,
            _ignored: ignored,
        })
    }

    /// Waits for the end of the agent or for a cancel, asks the agent to end, ends all other processes ([`sweep`]), and
    /// waits for the last output. The caller writes the record.
    ///
    /// [`sweep`]: super::sweep
    async fn run(mut self, folder: &RunFolder) -> io::Result<ExitRecord> {
        let cancel = self.until_end_or_stop().await;
        // At once, because the end of the other processes may free space.
        let disk_full = folder.disk_full();
        if let Some(cancel) = cancel {
            self.stop_politely(cancel).await;
        }
        let kill = cancel.map_or(Duration::from_millis(self.order.kill_grace_ms), |cancel| cancel.kill);
        let swept = self.sweep(kill).await?;
        let unkept = self.finish_output().await;
        self.read_stderr();
        // On a full disk a part of standard error is lost. The record of the end is more important.
        let _ = self.kept.finish();
        let status = self.ended;
        Ok(ExitRecord {
            code: status.and_then(WaitStatus::exit_status),
            signal: status.and_then(WaitStatus::terminating_signal),
            reaped: swept.signalled,
            left: swept.left,
            cancelled: self.cancelled,
            failure: folder.read(RunFolder::EXEC_FAILURE)?,
            disk_full,
            unkept,
            over_limit: self.watch.over(),
            emptied_at: None,
        })
    }

    pub(super) fn child_has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Whether the run must be ended at once.
    pub(super) fn must_end(&self) -> bool {
        self.watch.over().is_some() || self.output_stuck
    }

    /// Waits until the agent ends, a cancel comes, or the run must end. Returns the cancel.
    async fn until_end_or_stop(&mut self) -> Option<CancelLine> {
        while !self.child_has_ended() && !self.must_end() {
            if let Happening::Cancel(cancel) = self.wait(None).await {
                return Some(cancel);
            }
        }
        None
    }

    /// Asks the agent to end by itself.
    async fn stop_politely(&mut self, cancel: CancelLine) {
        let until = Instant::now() + cancel.grace;
        if self.order.interrupt {
            self.signal_child(Signal::INT);
            self.until_child_ends(Instant::now() + cancel.grace / 2).await;
        }
        if !self.child_has_ended() {
            self.signal_child(Signal::TERM);
            self.until_child_ends(until).await;
        }
    }

    /// Signals the whole process group, which the exec stage has made (`exec.rs`, `setsid`): some agents consist of a
    /// launcher, which passes no signal on, and the real program. If the agent speaks a protocol, this is the group of
    /// its `converse` process, without the program: the next step is `Exchange::run` (`converse/exchange.rs`).
    fn signal_child(&self, signal: Signal) {
        if kill_process_group(self.child, signal).is_err() {
            // It has no group of its own yet, or has just ended.
            let _ = kill_process(self.child, signal);
        }
    }

    async fn until_child_ends(&mut self, deadline: Instant) {
        while !self.child_has_ended() {
            if let Happening::Deadline | Happening::MustEnd = self.wait(Some(deadline)).await {
                return;
            }
        }
    }

    /// Waits until all output is in the spool. Returns what is missing. The sweep is over: no process of the run is
    /// left, except those that it could not end. After a cancel, or if the run must end, output does not wait for space
    /// on a full disk any more.
    async fn finish_output(&mut self) -> Option<Unkept> {
        self.output.finish();
        if self.cancelled || self.must_end() {
            self.output.give_up();
        }
        loop {
            tokio::select! {
                unkept = self.output.ended() => return unkept,
                Ok(()) = self.control.readable() => {
                    if self.control.read().cancel.is_some() {
                        self.cancelled = true;
                        self.output.give_up();
                    }
                }
            }
        }
    }

    /// Waits for one event, and reads standard error and takes the statuses of ended processes meanwhile. All steps of
    /// [`Supervisor::run`] use it, also [`sweep`](super::sweep), except `finish_output`.
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
                        self.cancelled = true;
                        return Happening::Cancel(cancel);
                    }
                    if told.check_limits && self.is_over_a_limit() {
                        return Happening::MustEnd;
                    }
                }
                () = self.check_timer.tick(), if self.watch.has_limits() => {
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

    /// Checks the limits now, and sets the time of the next check.
    fn is_over_a_limit(&mut self) -> bool {
        let is_over = self.watch.has_limits() && self.watch.check();
        // If the timer cannot be set, it keeps its period.
        let _ = self.check_timer.set(self.watch.pause());
        is_over
    }

    /// Takes the statuses of all children that have ended: the agent, and descendants of it, which become children of
    /// the subreaper when their parent ends.
    fn reap(&mut self) {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            if pid == self.child {
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
                // After an error there is nothing more to read.
                Err(_) => self.stderr = None,
            }
        }
    }
}

async fn readable(pipe: Option<&pipe::Receiver>) -> Option<io::Result<()>> {
    Some(pipe?.readable().await)
}
