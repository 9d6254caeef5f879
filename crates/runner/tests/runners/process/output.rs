//! What an agent prints reaches the reader.

use std::fs;
use std::fs::OpenOptions;
use std::io::Write as _;

use tokenrail_ports::{ExitStatus, Line, OutputLine};

use super::support::{Bench, first, rest, texts, until};

#[tokio::test]
async fn all_output_arrives_in_order_and_with_its_offsets() {
    let bench = Bench::new("seq 1 50000; printf 'last\\r\\n'");
    let mut run = bench.start().await;
    let (lines, end) = rest(&mut run).await;
    let mut expected: Vec<String> = (1..=50_000).map(|number| number.to_string()).collect();
    let mut offset = 0;
    for (line, text) in lines.iter().zip(&expected) {
        offset += text.len() as u64 + 1;
        assert_eq!(line.end_offset, offset);
    }
    expected.push("last".to_owned());
    assert_eq!(texts(&lines), expected);
    assert_eq!(lines.last().map(|line| line.end_offset), Some(offset + 6));
    assert_eq!((end.status, end.reaped, end.error), (ExitStatus::Code(0), 0, None));
    bench.assert_nothing_left().await;
}

#[tokio::test]
async fn output_is_seen_while_the_agent_runs_and_no_call_that_is_dropped_loses_any() {
    let bench = Bench::new("for i in 1 2 3; do echo $i; until [ -e go$i ]; do sleep 0.01; done; done");
    let mut run = bench.start().await;
    for step in 1..=3 {
        let mut seen = Vec::new();
        while seen.is_empty() {
            // The pump drops this call whenever something else happens.
            tokio::select! {
                biased;
                lines = first(&mut run) => seen = lines,
                () = tokio::task::yield_now() => {}
            }
        }
        assert_eq!(seen, [step.to_string()]);
        fs::write(bench.work(&format!("go{step}")), "").unwrap();
    }
    assert_eq!(rest(&mut run).await.1.status, ExitStatus::Code(0));
}

#[tokio::test]
async fn the_agent_does_not_wait_for_whoever_reads_it() {
    let bench = Bench::new("head -c 3000000 /dev/zero | tr '\\0' 'x'; echo; touch done");
    let mut run = bench.start().await;
    until("it has printed all", || bench.work("done").exists()).await;
    let (lines, _) = rest(&mut run).await;
    assert_eq!(lines.iter().map(|line| line.end_offset).collect::<Vec<_>>(), [3_000_001]);
}

#[tokio::test]
async fn a_line_that_is_too_long_is_skipped_and_stays_in_the_spool() {
    let mut bench = Bench::new("echo a; head -c 100000 /dev/zero | tr '\\0' 'x'; echo; echo b");
    bench.config.limits.line_bytes = 1000;
    bench.config.limits.head_bytes = 4;
    bench.config.limits.read_bytes = 777;
    let mut run = bench.start().await;
    let (lines, _) = rest(&mut run).await;
    let expected = [
        OutputLine { line: Line::Whole("a".into()), end_offset: 2 },
        OutputLine {
            line: Line::TooLong { head: "xxxx".into(), length_bytes: 100_000 },
            end_offset: 100_003,
        },
        OutputLine { line: Line::Whole("b".into()), end_offset: 100_005 },
    ];
    assert_eq!(lines, expected);
    run.leave().await;
    assert!(!bench.run_folder().exists());
    let kept = bench.run_folder().with_extension("kept").join("stdout");
    assert_eq!(fs::metadata(kept).unwrap().len(), 100_005);
}

#[tokio::test]
async fn a_line_without_an_end_is_given_as_cut_and_the_folder_goes() {
    let bench = Bench::new("echo a; printf 'b\\303'; exit 3");
    let mut run = bench.start().await;
    let (lines, end) = rest(&mut run).await;
    assert_eq!(lines.last().unwrap().line, Line::Cut(b"b\xc3".as_slice().into()));
    assert_eq!(end.status, ExitStatus::Code(3));
    run.leave().await;
    assert_eq!(fs::read_dir(&bench.config.runs).unwrap().count(), 0);
}

#[tokio::test]
async fn standard_error_is_drained_and_its_beginning_and_end_are_kept() {
    let mut bench = Bench::new("echo begin >&2; seq 1 200000 >&2; echo end >&2; echo out; exit 1");
    bench.config.limits.stderr_bytes = 1000;
    let mut run = bench.start().await;
    let (lines, end) = rest(&mut run).await;
    assert_eq!(texts(&lines), ["out"]);
    assert!(end.stderr.starts_with("begin\n1\n2\n"), "{}", end.stderr);
    assert!(end.stderr.ends_with("199999\n200000\nend\n"), "{}", end.stderr);
    assert!(end.stderr.len() < 1100, "{} bytes", end.stderr.len());
}

#[tokio::test]
async fn nothing_is_lost_when_an_agent_opens_its_output_anew() {
    for print_b in [
        "echo b > /dev/stdout",
        "echo b > /proc/self/fd/1",
        "echo b | tee /proc/$$/fd/1 > /dev/null",
        "echo b | dd of=/dev/stdout 2> /dev/null",
        "sh -c 'echo b > /dev/fd/1'",
    ] {
        let bench = Bench::new(&format!("echo a; until [ -e go ]; do sleep 0.01; done; {print_b}; echo c"));
        let mut run = bench.start_and_hear("a").await;
        fs::write(bench.work("go"), "").unwrap();
        let (lines, end) = rest(&mut run).await;
        assert_eq!(texts(&lines), ["b", "c"], "{print_b}");
        assert_eq!((end.status, end.error), (ExitStatus::Code(0), None), "{print_b}");
        let spool = fs::read_to_string(bench.run_folder().join("stdout")).unwrap();
        assert_eq!(spool, "a\nb\nc\n", "{print_b}");
    }
}

#[tokio::test]
async fn a_stranger_who_holds_the_output_keeps_no_run_open() {
    let bench = Bench::new("echo $$; until [ -e go ]; do sleep 0.01; done; seq 1 1000; echo last");
    let mut run = bench.start().await;
    let agent = first(&mut run).await.remove(0);
    // This process does not belong to the run, so it is not ended with it. It keeps printing, and then holds the pipe
    // open.
    let mut output = OpenOptions::new().write(true).open(format!("/proc/{agent}/fd/1")).unwrap();
    let printing = std::thread::spawn(move || {
        let _ = (0..1_000_000).try_for_each(|_| output.write_all(b"and I\n"));
        output
    });
    fs::write(bench.work("go"), "").unwrap();
    let (lines, end) = rest(&mut run).await;
    assert!(texts(&lines).contains(&"last".to_owned()));
    assert_eq!((end.status, end.error), (ExitStatus::Code(0), None));
    bench.assert_nothing_left().await;
    printing.join().unwrap();
}
