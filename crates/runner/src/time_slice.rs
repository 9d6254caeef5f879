//! How long a thread may run before the kernel checks whether another one should.

use std::io;
use std::time::Duration;

/// Sets the time slice of the calling thread. Threads and processes that it starts later inherit the slice. `None`
/// restores the kernel's default.
///
/// On Linux 6.12 and later, a thread with a short slice soon gets a processor from a thread with a longer one, and runs
/// for as short a time itself. Its share of the processor stays the same. The kernel limits a slice to 0.1 to 100 ms.
/// Earlier kernels ignore it.
///
/// # Errors
/// If the kernel refuses the system call, for example in a sandbox.
pub fn set_time_slice(slice: Option<Duration>) -> io::Result<()> {
    let mut attributes = attributes_of_this_thread()?;
    attributes.sched_runtime = slice.map_or(0, |slice| u64::try_from(slice.as_nanos()).unwrap_or(u64::MAX));
    set_attributes(&attributes)
}

/// Lets other threads of the server run before the calling thread, which works in the background: lowers its priority,
/// and restores the kernel's default time slice. A thread with a shorter slice that is woken then usually gets the
/// processor from it at once. Before Linux 6.12, only the priority helps.
///
/// The thread has a slightly higher priority than agents with the default niceness: a commit may wait for its work.
///
/// Without this, two things delay tokens although another processor is idle: the kernel does not move a woken thread
/// there, and it ends the slice of a busy thread only at the next tick of its clock (4 ms with `CONFIG_HZ=250`).
///
/// # Errors
/// If the kernel refuses a system call, for example in a sandbox.
pub fn work_in_background() -> io::Result<()> {
    // On Linux, each thread has its own niceness.
    let lowered = rustix::process::nice(BACKGROUND_NICE);
    set_time_slice(None)?;
    lowered.map(|_| ()).map_err(io::Error::from)
}

/// What is added to the niceness of threads that work in the background. It is less than the default of
/// `limits.agent_nice`. If processors are scarce, such a thread gets about two fifths of what another thread of the
/// server gets.
const BACKGROUND_NICE: i32 = 4;

const THIS_THREAD: libc::pid_t = 0;
const NO_FLAGS: libc::c_uint = 0;
const SIZE: u32 = size_of::<libc::sched_attr>() as u32;

#[expect(unsafe_code, reason = "no library has this system call")]
fn attributes_of_this_thread() -> io::Result<libc::sched_attr> {
    let mut attributes = libc::sched_attr {
        size: SIZE,
        sched_policy: 0,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the kernel writes at most `SIZE` bytes to the structure, which lives until the call returns.
    let done =
        unsafe { libc::syscall(libc::SYS_sched_getattr, THIS_THREAD, &raw mut attributes, SIZE, NO_FLAGS) };
    if done == 0 { Ok(attributes) } else { Err(io::Error::last_os_error()) }
}

#[expect(unsafe_code, reason = "no library has this system call")]
fn set_attributes(attributes: &libc::sched_attr) -> io::Result<()> {
    // SAFETY: the kernel reads `size` bytes of the structure, which is its size.
    let done =
        unsafe { libc::syscall(libc::SYS_sched_setattr, THIS_THREAD, &raw const *attributes, NO_FLAGS) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// The niceness of the calling thread.
    fn niceness() -> i32 {
        attributes_of_this_thread().unwrap().sched_nice
    }

    /// The slice of the calling thread in nanoseconds. 0 if the kernel does not know slices of threads.
    fn slice() -> u64 {
        attributes_of_this_thread().unwrap().sched_runtime
    }

    #[test]
    fn a_thread_in_the_background_gives_way_alone() {
        let (usual, others) = (slice(), niceness());
        thread::spawn(move || {
            set_time_slice(Some(Duration::from_micros(300))).unwrap();
            work_in_background().unwrap();
            assert_eq!((slice(), niceness()), (usual, (others + BACKGROUND_NICE).min(19)));
        })
        .join()
        .unwrap();
        assert_eq!((slice(), niceness()), (usual, others), "other threads are as before");
    }

    #[test]
    fn a_slice_is_inherited_until_it_is_restored() {
        let usual = slice();
        let set = if usual == 0 { 0 } else { 300_000 };
        let told = thread::spawn(move || {
            set_time_slice(Some(Duration::from_micros(300))).unwrap();
            let own = slice();
            let (inherited, restored) = thread::spawn(|| {
                let inherited = slice();
                set_time_slice(None).unwrap();
                (inherited, slice())
            })
            .join()
            .unwrap();
            (own, inherited, restored)
        })
        .join()
        .unwrap();
        assert_eq!(told, (set, set, usual));
        assert_eq!(slice(), usual, "other threads keep theirs");
    }

    #[test]
    fn the_niceness_stays() {
        thread::spawn(|| {
            rustix::process::nice(3).unwrap();
            set_time_slice(Some(Duration::from_millis(1))).unwrap();
            assert_eq!(attributes_of_this_thread().unwrap().sched_nice, rustix::process::nice(0).unwrap());
        })
        .join()
        .unwrap();
    }
}
