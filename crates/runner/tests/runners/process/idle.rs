//! An interactive process idles between two turns, and survives the death of a server.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};
use tokenrail_domain::TurnNumber;
use tokenrail_ports::{Adoption, ExitStatus, IAgentRun, IAgentRunner, IRuns as _};
use tokenrail_runner::{ConverseConfig, ProcessLimits, ProcessRunner, Protocol, Unanswered};

use super::support::{Bench, rest, texts, until};

/// Records the requests and answers them.
const SCRIPT: &str = r#"while read -r line; do
echo "$$ $line" >> asked
echo done
echo '{"type":"result","subtype":"success","is_error":false}'
done"#;

const FIRST: [&str; 3] = ["done", RESULT, r#"{"tokenrail":"rests"}"#];
const SECOND: [&str; 4] = [r#"{"tokenrail":"further","turn":2}"#, "done", RESULT, r#"{"tokenrail":"rests"}"#];
const RESULT: &str = r#"{"type":"result","subtype":"success","is_error":false}"#;

fn bench() -> Bench {
    let mut bench = Bench::new(SCRIPT);
    bench.config.converse = Some(ConverseConfig {
        protocol: Protocol::Claude,
        permission_timeout_ms: 60_000,
        unanswered: Unanswered::Reject,
        files: false,
        idle_ms: 60_000,
    });
    bench
}

/// Prepares the bench for the second turn of its agent.
fn second(bench: &mut Bench) {
    bench.order.run = TurnNumber(2);
    bench.order.prompt = "and now?".to_owned();
}

/// The process and the prompt of each request to the agent.
fn asked(bench: &Bench) -> Vec<(i32, String)> {
    let text = fs::read_to_string(bench.work("asked")).unwrap();
    let line = |line: &str| {
        let (pid, message) = line.split_once(' ').unwrap();
        let message: serde_json::Value = serde_json::from_str(message).unwrap();
        (pid.parse().unwrap(), message["message"]["content"].as_str().unwrap().to_owned())
    };
    text.lines().map(line).collect()
}

fn prompts(bench: &Bench) -> Vec<String> {
    asked(bench).into_iter().map(|(_, prompt)| prompt).collect()
}

async fn said(run: &mut Box<dyn IAgentRun>) -> Vec<String> {
    let (lines, end) = rest(run).await;
    assert!(end.idle, "{end:?}");
    texts(&lines)
}

/// Runs a first turn whose process idles. Returns the runner that knows it.
async fn first_turn(bench: &Bench) -> ProcessRunner {
    let runner = bench.runner();
    let mut run = runner.start(&bench.order).await.unwrap();
    assert_eq!(said(&mut run).await, FIRST);
    run.leave().await;
    runner
}

/// Runs a first turn whose process idles, for a server that has died since. Returns its folder.
async fn rests_alone(bench: &Bench) -> PathBuf {
    let mut run = bench.start().await;
    assert_eq!(said(&mut run).await, FIRST);
    bench.run_folder()
}

/// The first step of a server that begins another turn in the process.
fn write_further(folder: &Path) {
    let behind = fs::metadata(folder.join("stdout")).unwrap().len();
    let further = format!(r#"{{"turn":2,"prompt":"and now?","behind":{behind},"stderr_begins":0}}"#);
    fs::write(folder.join("further.json"), further).unwrap();
}

/// The second step.
fn tell(folder: &Path) {
    fs::write(folder.join("answers"), "{\"further\":2}\n").unwrap();
}

/// The same, for a server that died before it told the process of the second turn.
async fn nearly_told(bench: &mut Bench) -> PathBuf {
    let folder = rests_alone(bench).await;
    write_further(&folder);
    second(bench);
    folder
}

/// The same, for a server that died after it told the process of the second turn.
async fn told_alone(bench: &mut Bench) -> PathBuf {
    let folder = nearly_told(bench).await;
    tell(&folder);
    folder
}

/// A script line that waits until a file of the first turn contains the word.
fn until_holds(bench: &Bench, file: &str, word: &str) -> String {
    let file = bench.run_folder_of(1).join(file);
    format!("until grep -q {word} '{}'; do sleep 0.01; done", file.display())
}

fn kill_agent(bench: &Bench) {
    kill_process(Pid::from_raw(asked(bench)[0].0).unwrap(), Signal::KILL).unwrap();
}

#[tokio::test]
async fn a_turn_follows_in_the_process_of_the_one_before() {
    let mut bench = bench();
    let runner = first_turn(&bench).await;
    second(&mut bench);
    let mut run = runner.start(&bench.order).await.unwrap();
    let (lines, _) = rest(&mut run).await;
    assert_eq!(texts(&lines), SECOND);
    assert_eq!(lines[0].end_offset, SECOND[0].len() as u64 + 1, "counted from where the turn begins");
    run.leave().await;
    let asked = asked(&bench);
    assert_eq!((asked.len(), asked[0].0), (2, asked[1].0));
    runner.dismiss(bench.order.agent).await;
    bench.assert_nothing_left().await;
    assert_eq!(fs::read_dir(&bench.config.runs).unwrap().count(), 0);
}

#[tokio::test]
async fn a_turn_that_wants_something_else_gets_a_process_of_its_own() {
    let mut bench = bench();
    let runner = first_turn(&bench).await;
    second(&mut bench);
    bench.order.model = Some("opus".to_owned());
    let mut run = runner.start(&bench.order).await.unwrap();
    assert_eq!(said(&mut run).await, FIRST);
    assert_ne!(asked(&bench)[0].0, asked(&bench)[1].0);
    assert_eq!(fs::read_dir(&bench.config.runs).unwrap().count(), 1, "of the first nothing is left");
}

#[tokio::test]
async fn whom_a_server_had_told_when_it_died_is_asked_once() {
    let mut bench = bench();
    told_alone(&mut bench).await;
    for _ in 0..2 {
        // The second of these servers finds a process that got its prompt long ago.
        let mut run = bench.adopt().await.unwrap();
        assert_eq!(said(&mut run).await, SECOND);
        assert_eq!(prompts(&bench), ["hello", "and now?"]);
    }
}

#[tokio::test]
async fn whom_a_server_was_about_to_tell_when_it_died_is_not_asked_any_more() {
    let mut bench = bench();
    let folder = nearly_told(&mut bench).await;
    assert!(bench.adopt().await.is_none());
    bench.assert_nothing_left().await;
    assert!(!folder.exists());
    assert_eq!(prompts(&bench), ["hello"]);
}

#[tokio::test]
async fn a_process_of_an_earlier_server_ends_with_its_turn() {
    let mut bench = bench();
    told_alone(&mut bench).await;
    let runner = bench.runner();
    let Adoption::Run(mut run) = runner.adopt(&bench.order, 0).await.unwrap() else { panic!("it is there") };
    assert_eq!(said(&mut run).await, SECOND);
    run.leave().await;
    bench.order.run = TurnNumber(3);
    let mut run = runner.start(&bench.order).await.unwrap();
    assert_eq!(said(&mut run).await, FIRST);
    let asked = asked(&bench);
    assert_ne!(asked[1].0, asked[2].0, "it may have been started in another way than it would be now");
    assert_eq!(fs::read_dir(&bench.config.runs).unwrap().count(), 1, "of the first nothing is left");
}

#[tokio::test]
async fn a_process_that_is_cancelled_while_it_rests_goes_on_to_its_end() {
    let bench = bench();
    let mut run = bench.start().await;
    assert_eq!(said(&mut run).await, FIRST);
    run.cancel().await.unwrap();
    let (lines, end) = rest(&mut run).await;
    assert_eq!((texts(&lines).len(), end.idle), (0, false));
    run.leave().await;
    bench.assert_nothing_left().await;
    assert!(!bench.run_folder().exists());
}

#[tokio::test]
async fn a_program_that_does_not_end_when_it_has_waited_long_enough_is_ended() {
    let mut bench = bench();
    bench.script("read -r line; echo '{\"type\":\"result\",\"subtype\":\"success\"}'; trap '' TERM; while :; do sleep 1; done");
    bench.config.converse.as_mut().unwrap().idle_ms = 50;
    bench.config.limits.exit_grace_ms = 100;
    // First for a server that is running, then for one that has died.
    for keeps in [true, false] {
        let runner = bench.runner();
        let mut run = runner.start(&bench.order).await.unwrap();
        assert!(rest(&mut run).await.1.idle);
        if keeps {
            run.leave().await;
        }
        bench.assert_nothing_left().await;
        until("its folder has gone", || !keeps || !bench.run_folder().exists()).await;
    }
}

/// The lines that a program may print while it idles, and whether it still gets the second turn.
#[tokio::test]
async fn what_is_said_between_two_turns_is_of_neither() {
    let status = r#"{"type":"system","subtype":"status","status":null}"#;
    let begins = r#"{"type":"system","subtype":"init"}"#;
    for (unasked, is_asked) in
        [(vec![status, "nonsense"], true), (vec![begins], false), (vec![RESULT], false)]
    {
        let mut bench = bench();
        let echo = format!("printf '%s\\n' '{}'\n", unasked.join("' '"));
        let rests = until_holds(&bench, "stdout", "rests");
        bench.script(&format!(
            "read -r line; echo done; echo '{RESULT}'; {rests}\n{echo}touch said\n\
             while read -r line; do echo \"$$ $line\" >> asked; echo done; echo '{RESULT}'; done"
        ));
        let runner = first_turn(&bench).await;
        until("it has spoken", || bench.work("said").exists()).await;
        second(&mut bench);
        bench.script("read -r line; echo other");
        let mut run = runner.start(&bench.order).await.unwrap();
        if is_asked {
            assert_eq!(said(&mut run).await, SECOND);
        } else {
            assert_eq!(texts(&rest(&mut run).await.0), ["other"], "a process of its own: {unasked:?}");
        }
    }
}

#[tokio::test]
async fn a_program_that_is_within_a_line_with_its_result_does_not_become_idle() {
    let bench = bench();
    bench.script(&format!(
        "read -r line; printf '%s\\n%s' '{RESULT}' 'a line that '; sleep 0.2; echo ends; cat > asked; exit 4"
    ));
    let (lines, end) = rest(&mut bench.start().await).await;
    assert_eq!(
        (texts(&lines), end.status),
        (vec![RESULT.into(), "a line that ends".into()], ExitStatus::Code(4))
    );
}

#[tokio::test]
async fn a_program_that_talks_on_while_it_rests_does_not_fill_the_disk() {
    let mut bench = bench();
    bench.config.limits.idle_spool_bytes = 1000;
    let rests = until_holds(&bench, "stdout", "rests");
    bench.script(&format!("read -r line; echo '{RESULT}'; {rests}; while :; do echo more; sleep 0.01; done"));
    let runner = bench.runner();
    let mut run = runner.start(&bench.order).await.unwrap();
    rest(&mut run).await;
    run.leave().await;
    until("its folder has gone", || !bench.run_folder().exists()).await;
    bench.assert_nothing_left().await;
}

#[tokio::test]
async fn within_a_line_nobody_is_asked() {
    let mut bench = bench();
    let rests = until_holds(&bench, "stdout", "rests");
    bench.script(&format!(
        "read -r line; echo '{RESULT}'; {rests}; printf 'a line that '; touch begun\n\
         until [ -e go ]; do sleep 0.01; done; echo ends; read -r line; echo '{RESULT}'"
    ));
    let runner = bench.runner();
    let mut run = runner.start(&bench.order).await.unwrap();
    assert_eq!(said(&mut run).await, FIRST[1..]);
    run.leave().await;
    until("it is within a line", || bench.work("begun").exists()).await;
    second(&mut bench);
    let go = async {
        until("it is told", || bench.run_folder_of(1).join("further.json").exists()).await;
        fs::write(bench.work("go"), "").unwrap();
    };
    let (run, ()) = tokio::join!(runner.start(&bench.order), go);
    assert_eq!(texts(&rest(&mut run.unwrap()).await.0)[..2], [SECOND[0], RESULT]);
}

#[tokio::test]
async fn what_an_earlier_turn_has_complained_of_is_not_told_again() {
    let mut bench = bench();
    let told = until_holds(&bench, "stderr", "old");
    bench.script(&format!(
        "read -r line; echo old >&2; {told}; echo '{RESULT}'; read -r line; echo new >&2; exit 3"
    ));
    let runner = bench.runner();
    let mut run = runner.start(&bench.order).await.unwrap();
    said(&mut run).await;
    run.leave().await;
    second(&mut bench);
    let (_, end) = rest(&mut runner.start(&bench.order).await.unwrap()).await;
    assert_eq!((end.status, end.stderr.as_str()), (ExitStatus::Code(3), "new\n"));
}

#[tokio::test]
async fn of_a_process_that_has_ended_unasked_nothing_is_left() {
    let mut bench = bench();
    let folder = rests_alone(&bench).await;
    kill_agent(&bench);
    until("the run has ended", || folder.join("exit.json").exists()).await;
    write_further(&folder);
    second(&mut bench);
    assert!(bench.adopt().await.is_none());
    assert!(!folder.exists());
    assert_eq!(prompts(&bench), ["hello"]);
}

#[tokio::test]
async fn what_was_said_in_a_process_that_has_ended_meanwhile_is_read() {
    let mut bench = bench();
    let folder = told_alone(&mut bench).await;
    until("it was asked", || prompts(&bench).len() == 2).await;
    until("it is idle again", || {
        fs::read_to_string(folder.join("stdout")).unwrap().matches("rests").count() == 2
    })
    .await;
    kill_agent(&bench);
    until("the run has ended", || folder.join("exit.json").exists()).await;
    assert_eq!(said(&mut bench.adopt().await.unwrap()).await, SECOND);
}

#[tokio::test]
async fn a_process_that_rests_is_swept_unless_its_next_turn_runs() {
    let mut bench = bench();
    let folder = rests_alone(&bench).await;
    write_further(&folder);
    let agent = bench.order.agent;
    let sweep = async |keep: TurnNumber| bench.runs().sweep(&BTreeSet::from([(agent, keep)])).await.unwrap();
    assert_eq!(sweep(TurnNumber(2)).await, 0);
    assert_eq!(sweep(TurnNumber(3)).await, 1);
    bench.assert_nothing_left().await;
    assert!(!folder.exists());
    second(&mut bench);
    assert!(bench.adopt().await.is_none());
}

#[tokio::test]
async fn a_process_that_rests_is_noticed_if_the_configuration_speaks_with_it_no_more() {
    let mut bench = bench();
    let folder = rests_alone(&bench).await;
    bench.config.converse = None;
    let mut run = bench.adopt().await.unwrap();
    assert_eq!(said(&mut run).await, FIRST);
    run.leave().await;
    bench.assert_nothing_left().await;
    until("nothing of it is kept", || !folder.exists()).await;
}

#[tokio::test]
async fn a_turn_in_the_process_of_another_is_ended_like_any() {
    let mut bench = bench();
    let folder = nearly_told(&mut bench).await;
    bench.runs().end(bench.order.agent, bench.order.run).await.unwrap();
    bench.assert_nothing_left().await;
    assert!(!folder.exists() && folder.with_extension("kept").join("stdout").exists());
}

#[tokio::test]
async fn whoever_does_not_hear_is_ended_and_another_one_asked() {
    let mut bench = bench();
    bench.config.limits = ProcessLimits { spawn_timeout_ms: 2_000, ..bench.config.limits };
    let runner = bench.runner();
    let mut run = runner.start(&bench.order).await.unwrap();
    said(&mut run).await;
    run.leave().await;
    let speaks = |command: &str| command.contains(" claude ");
    let (speaker, _) = bench.processes().into_iter().find(|(_, command)| speaks(command)).unwrap();
    kill_process(Pid::from_raw(speaker).unwrap(), Signal::STOP).unwrap();
    second(&mut bench);
    let mut run = runner.start(&bench.order).await.unwrap();
    assert_eq!(said(&mut run).await, FIRST);
    let asked = asked(&bench);
    assert_eq!((prompts(&bench).len(), asked[0].0 == asked[1].0), (2, false));
}

#[tokio::test]
async fn a_program_without_anybody_who_speaks_with_it_cannot_be_idle() {
    let bench =
        Bench::new(r#"echo '{"tokenrail":"rests"}'; until [ -e go ]; do sleep 0.01; done; echo more"#);
    let mut run = bench.start().await;
    fs::write(bench.work("go"), "").unwrap();
    let (lines, end) = rest(&mut run).await;
    assert_eq!((texts(&lines).len(), end.status), (2, ExitStatus::Code(0)));
    let Ok(Adoption::Run(_)) = bench.runner().adopt(&bench.order, 0).await else { panic!("it is there") };
}
