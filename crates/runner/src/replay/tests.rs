use tokenrail_ports::Line;
use tokenrail_ports::testing::samples::turn_order;

use super::*;

const OUTPUT: &str = "a\nbb\nccc\ndd";
const TIMES: &str = "1000 2\n1000 3\n3000 4\n4000 2\n";

fn order() -> TurnOrder {
    turn_order("anything")
}

fn runner(speed: f64) -> ReplayRunner {
    ReplayRunner::new(Transcript::new("test", OUTPUT, TIMES), speed)
}

/// The lines, and after how many milliseconds they came.
async fn played(mut run: Box<dyn IAgentRun>) -> Vec<(u128, Vec<u64>)> {
    let started = Instant::now();
    let mut played = Vec::new();
    loop {
        match run.next().await.unwrap() {
            RunOutput::Lines(lines) => {
                let offsets = lines.iter().map(|line| line.end_offset).collect();
                played.push((started.elapsed().as_millis(), offsets));
            }
            RunOutput::Progress { .. } => {}
            RunOutput::Ended(end) => {
                assert_eq!(end, RunEnd::default());
                return played;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn lines_come_when_they_came() {
    let played_at = async |speed| played(runner(speed).start(&order()).await.unwrap()).await;
    assert_eq!(played_at(1.0).await, [(1000, vec![2, 5]), (3000, vec![9]), (4000, vec![11])]);
    assert_eq!(played_at(2.0).await, [(500, vec![2, 5]), (1500, vec![9]), (2000, vec![11])]);
    for at_once in [0.0, -1.0, f64::NAN] {
        assert_eq!(played_at(at_once).await, [(0, vec![2, 5, 9, 11])], "{at_once}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_committed_comes_at_once_and_the_rest_goes_on_from_there() {
    let Adoption::Run(run) = runner(1.0).adopt(&order(), 5).await.unwrap() else { panic!("it can be had") };
    assert_eq!(played(run).await, [(0, vec![2, 5]), (2000, vec![9]), (3000, vec![11])]);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_it_at_once() {
    let mut run = runner(1.0).start(&order()).await.unwrap();
    assert!(matches!(run.next().await.unwrap(), RunOutput::Lines(_)));
    run.cancel().await.unwrap();
    let started = Instant::now();
    assert!(matches!(run.next().await.unwrap(), RunOutput::Ended(_)));
    assert_eq!(started.elapsed(), Duration::ZERO);
}

#[test]
fn a_recording_is_read_with_its_times_if_there_are_any() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.jsonl");
    std::fs::write(&path, OUTPUT).unwrap();
    let due = |transcript: Transcript| -> Vec<u128> {
        transcript.lines.iter().map(|(due, _)| due.as_millis()).collect()
    };
    assert_eq!(due(Transcript::read(&path).unwrap()), [0, 0, 0, 0], "without times");
    std::fs::write(path.with_extension("times"), "7 2\nnonsense\n5 4\n").unwrap();
    let read = Transcript::read(&path).unwrap();
    assert_eq!(due(read.clone()), [7_u128, 7, 7, 7], "times never go back");
    assert_eq!(read.lines[3].1.line, Line::Cut("dd".into()));
    assert!(Transcript::read(&folder.path().join("y.jsonl")).is_err());
}
