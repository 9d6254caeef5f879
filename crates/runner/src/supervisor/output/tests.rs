use std::io::PipeWriter;
use std::sync::{Mutex, MutexGuard};

use tokio::time::timeout;

use super::*;

/// The longest wait in these tests. Reaching it is a failure.
const PATIENCE: Duration = Duration::from_secs(30);
const FOR_EVER: Duration = Duration::from_hours(1);

/// A disk with little room, or one that fails.
#[derive(Clone, Default)]
struct Disk(Arc<Mutex<Contents>>);

#[derive(Default)]
struct Contents {
    room: usize,
    fails: bool,
    kept: Vec<u8>,
}

impl Disk {
    fn with_room(room: usize) -> Self {
        let disk = Self::default();
        disk.lock().room = room;
        disk
    }

    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.0.lock().unwrap()
    }
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut disk = self.lock();
        let written = bytes.len().min(disk.room);
        if disk.fails || written == 0 {
            return Err(if disk.fails { Errno::IO.into() } else { Errno::NOSPC.into() });
        }
        disk.room -= written;
        disk.kept.extend_from_slice(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn start(disk: &Disk, patience: Duration) -> (PipeWriter, OutputCopier) {
    let (pipe, agent) = io::pipe().unwrap();
    (agent, OutputCopier::start(pipe, disk.clone(), patience).unwrap())
}

async fn ended(copier: &mut OutputCopier) -> Option<Unkept> {
    timeout(PATIENCE, copier.ended()).await.expect("the copier ends")
}

async fn stuck(copier: &mut OutputCopier) {
    timeout(PATIENCE, copier.stuck()).await.expect("it says that it is stuck");
}

async fn until(holds: impl Fn() -> bool) {
    let waited = timeout(PATIENCE, async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    assert!(waited.await.is_ok(), "it never came to that");
}

#[tokio::test]
async fn everything_is_kept_when_the_last_writer_has_gone() {
    let disk = Disk::with_room(usize::MAX);
    let (mut agent, mut copier) = start(&disk, FOR_EVER);
    let printed: Vec<u8> = (0..3_000_000_u32).map(|number| number as u8).collect();
    agent.write_all(&printed).unwrap();
    drop(agent);
    assert_eq!(ended(&mut copier).await, None);
    assert!(disk.lock().kept == printed);
}

#[tokio::test]
async fn what_is_in_the_pipe_is_kept_and_who_holds_it_is_not_waited_for() {
    for _ in 0..100 {
        let disk = Disk::with_room(usize::MAX);
        let (mut agent, mut copier) = start(&disk, FOR_EVER);
        agent.write_all(b"the last word").unwrap();
        copier.finish();
        assert_eq!(ended(&mut copier).await, None);
        assert_eq!(disk.lock().kept, b"the last word");
    }
}

#[tokio::test]
async fn a_full_disk_is_waited_for_and_nothing_is_lost() {
    let disk = Disk::with_room(3);
    let (mut agent, mut copier) = start(&disk, FOR_EVER);
    agent.write_all(b"one two").unwrap();
    drop(agent);
    until(|| disk.lock().room == 0).await;
    // All processes of the run have ended, but output is still waiting for room.
    copier.finish();
    disk.lock().room = 100;
    assert_eq!(ended(&mut copier).await, None);
    assert_eq!(disk.lock().kept, b"one two");
}

#[tokio::test]
async fn a_disk_that_stays_full_is_told_with_what_is_lost() {
    let disk = Disk::with_room(3);
    let (mut agent, mut copier) = start(&disk, Duration::from_millis(1));
    agent.write_all(b"one two").unwrap();
    stuck(&mut copier).await;
    // This waits in the pipe.
    agent.write_all(b" three").unwrap();
    copier.finish();
    let unkept = ended(&mut copier).await.unwrap();
    assert_eq!((unkept.bytes, unkept.cause.disk_full), (10, true), "{unkept:?}");
    assert_eq!(disk.lock().kept, b"one");
}

#[tokio::test]
async fn whoever_gives_up_does_not_wait_for_room() {
    let (mut agent, mut copier) = start(&Disk::default(), FOR_EVER);
    agent.write_all(b"one").unwrap();
    copier.finish();
    copier.give_up();
    assert_eq!(ended(&mut copier).await.map(|unkept| unkept.bytes), Some(3));
}

#[tokio::test]
async fn a_disk_that_fails_is_not_waited_for() {
    let disk = Disk::with_room(100);
    disk.lock().fails = true;
    let (mut agent, mut copier) = start(&disk, FOR_EVER);
    agent.write_all(b"one").unwrap();
    stuck(&mut copier).await;
    copier.finish();
    let unkept = ended(&mut copier).await.unwrap();
    assert_eq!((unkept.bytes, unkept.cause.disk_full), (3, false), "{unkept:?}");
}

#[test]
fn lines_of_a_flood_are_told_from_lines_that_come_one_by_one() {
    let mut pace = Pace::default();
    let first = Instant::now();
    assert!(!pace.is_flood(first), "nothing came before");
    assert!(!pace.is_flood(first + FLOOD_GAP), "an agent that prints 1,000 lines a second does not wait");
    assert!(pace.is_flood(first + FLOOD_GAP + FLOOD_GAP / 2));
    assert!(!pace.is_flood(first + FLOOD_GAP * 4));
}
