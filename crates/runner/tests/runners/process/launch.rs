//! How an agent is started, and why a start is refused.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use tokenrail_domain::{AgentError, SessionId};
use tokenrail_ports::{ExitStatus, IAgentRunner, RunnerError};
use tokenrail_runner::SupervisorProgram;

use super::support::{Bench, rest, texts};

#[tokio::test]
async fn the_prompt_reaches_standard_input_byte_for_byte_and_no_command_line() {
    let mut bench = Bench::new("cat > got; tr '\\0' '\\n' < /proc/$$/cmdline");
    bench.order.prompt = "--evil 'quoted' $HOME\n\u{1f600}\r\n no line end".to_owned();
    let (lines, _) = rest(&mut bench.start().await).await;
    assert_eq!(fs::read(bench.work("got")).unwrap(), bench.order.prompt.as_bytes());
    assert!(!texts(&lines).concat().contains("evil"));
}

#[tokio::test]
async fn the_environment_is_the_list_that_the_configuration_allows() {
    let mut bench = Bench::new("tr '\\0' '\\n' < /proc/$$/environ");
    bench.config.env.insert("FIXED".to_owned(), "a=b c".to_owned());
    bench.config.pass_env.push("NOT_SET_ANYWHERE".to_owned());
    let (lines, _) = rest(&mut bench.start().await).await;
    let mut lines = texts(&lines);
    // Variables that the shell itself adds.
    lines.retain(|line| !["PWD=", "OLDPWD=", "SHLVL=", "_="].iter().any(|own| line.starts_with(own)));
    lines.sort();
    let marker = format!("TOKENRAIL_RUN={}-{}", bench.order.agent, bench.order.run);
    let path = format!("PATH={}", std::env::var("PATH").unwrap());
    assert_eq!(lines, ["FIXED=a=b c".to_owned(), path, marker]);
}

#[tokio::test]
async fn the_supervisor_has_nothing_of_the_environment() {
    let bench = Bench::new("until [ -e go ]; do sleep 0.01; done");
    let mut run = bench.start().await;
    let environ = fs::read(format!("/proc/{}/environ", bench.supervisor_pid())).unwrap();
    assert_eq!(String::from_utf8(environ).unwrap(), "");
    fs::write(bench.work("go"), "").unwrap();
    rest(&mut run).await;
}

#[tokio::test]
async fn the_agent_has_its_folder_and_a_session_of_its_own_and_no_descriptor_of_ours() {
    let bench = Bench::new(
        "pwd -P; umask; cut -d' ' -f1,6 /proc/$$/stat | tr ' ' '\\n'; readlink /proc/self/fd/* | grep runs",
    );
    let (lines, _) = rest(&mut bench.start().await).await;
    let lines = texts(&lines);
    assert_eq!(lines[0], bench.order.cwd.canonicalize().unwrap().to_str().unwrap());
    assert_eq!(lines[1], "0077");
    assert_eq!(lines[2], lines[3], "it leads its session");
    let file = |name| bench.run_folder().join(name).to_str().unwrap().to_owned();
    assert_eq!(lines[4..], [file("stdin")], "standard output is a pipe to grep");
}

#[tokio::test]
async fn model_and_session_come_after_the_fixed_arguments() {
    let mut bench = Bench::new("for arg; do echo \"$arg\"; done");
    bench.config.args = vec!["-p".to_owned(), "two words".to_owned()];
    bench.order.model = Some("big".to_owned());
    bench.order.session = SessionId::new("s;$1").ok();
    let (lines, _) = rest(&mut bench.start().await).await;
    assert_eq!(texts(&lines), ["-p", "two words", "--model", "big", "--resume", "s;$1"]);
}

#[tokio::test]
async fn a_model_that_looks_like_an_option_is_refused() {
    let mut bench = Bench::new("exit 0");
    bench.order.model = Some("--dangerous".to_owned());
    assert!(matches!(bench.refusal().await, RunnerError::Io(_)));
    assert!(SessionId::new("-x").is_err(), "no session can be one");
}

#[tokio::test]
async fn what_cannot_be_run_is_refused_before_anything_is_written() {
    let mut bench = Bench::new("exit 0");
    let program = bench.config.program.clone();
    for missing in ["no-such-program-anywhere", "/no/such/program", "./Cargo.toml", "work/agent", ""] {
        bench.config.program = missing.to_owned();
        assert!(matches!(bench.refusal().await, RunnerError::ProgramMissing { .. }), "{missing}");
    }
    for refused in ["/etc/passwd", "/etc"] {
        bench.config.program = refused.to_owned();
        assert!(matches!(bench.refusal().await, RunnerError::NotExecutable { .. }), "{refused}");
    }
    bench.config.program = program;
    for cwd in ["/no/such/folder", "/etc/passwd", "src"] {
        bench.order.cwd = cwd.into();
        assert!(matches!(bench.refusal().await, RunnerError::CwdUnusable { .. }), "{cwd}");
    }
    assert_eq!(fs::read_dir(&bench.config.runs).unwrap().count(), 0);
}

/// Why the run of a program with this content has ended without a process, and its bench.
async fn error_of_program(content: &str) -> (Bench, AgentError) {
    let bench = Bench::new("exit 0");
    fs::write(&bench.config.program, content).unwrap();
    let (lines, end) = rest(&mut bench.start().await).await;
    assert_eq!((lines, end.status), (Vec::new(), ExitStatus::None));
    (bench, end.error.unwrap())
}

#[tokio::test]
async fn a_program_that_turns_out_not_to_start_is_told() {
    let (_, error) = error_of_program("#!/no/such/interpreter\n").await;
    assert_eq!(error.code.as_deref(), Some("spawn_failed"));
}

#[tokio::test]
async fn what_is_no_program_is_not_given_to_a_shell() {
    let (bench, error) = error_of_program("echo by a shell\n").await;
    assert_eq!(error.code.as_deref(), Some("spawn_failed"));
    assert!(error.text.contains("Exec format error"), "{}", error.text);
    assert_eq!(bench.runner().probe().await.version, None);
}

#[tokio::test]
async fn an_agent_dies_of_a_broken_pipe_as_programs_do() {
    let bench = Bench::new("sh -c 'kill -s PIPE $$'; echo $?");
    let (lines, _) = rest(&mut bench.start().await).await;
    assert_eq!(texts(&lines), ["141"]);
}

#[tokio::test]
async fn a_supervisor_that_does_not_start_is_told_and_leaves_no_folder() {
    let mut bench = Bench::new("exit 0");
    bench.config.supervisor = SupervisorProgram::own("/bin/false".into());
    assert!(matches!(bench.refusal().await, RunnerError::Io(_)));
    assert_eq!(fs::read_dir(&bench.config.runs).unwrap().count(), 0);
}

#[tokio::test]
async fn the_run_folder_is_for_this_user_alone_and_holds_no_environment_once_the_agent_runs() {
    let bench = Bench::new("echo started; ls ../runs/*/order.json");
    let (lines, _) = rest(&mut bench.start().await).await;
    assert_eq!(texts(&lines), ["started"]);
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(bench.config.runs.clone()), mode(bench.run_folder())), (0o700, 0o700));
    for file in fs::read_dir(bench.run_folder()).unwrap() {
        let path = file.unwrap().path();
        assert_eq!(mode(path.clone()), 0o600, "{}", path.display());
    }
}

#[tokio::test]
async fn a_probe_tells_path_and_version() {
    let mut bench = Bench::new("echo; echo \"1.2.3 (Agent $1 $SECRET)\"; echo more");
    bench.config.pass_env.push("NOT_SET_ANYWHERE".to_owned());
    let probe = bench.runner().probe().await;
    assert_eq!(probe.program.as_ref(), Some(&bench.config.program));
    assert_eq!(probe.version.as_deref(), Some("1.2.3 (Agent --version )"));
    assert_eq!(probe.problem, None);
}

#[tokio::test]
async fn what_a_program_says_that_knows_no_version_is_none() {
    let bench = Bench::new("echo 'unknown option --version'; exit 2");
    let probe = bench.runner().probe().await;
    assert_eq!((probe.program.as_ref(), probe.version), (Some(&bench.config.program), None));
    assert_eq!(probe.problem, None, "it can be run");
}

#[tokio::test]
async fn a_probe_tells_which_keys_are_not_set_unless_there_is_one() {
    let mut bench = Bench::new("echo 1.0");
    let keys = ["NOT_SET_API_KEY", "NOT_SET_FOLDER", "NOT_SET_TOKEN"].map(str::to_owned);
    bench.config.pass_env.extend(keys.clone());
    let probe = bench.runner().probe().await;
    assert_eq!((probe.unset_keys, probe.problem), (vec![keys[0].clone(), keys[2].clone()], None));
    bench.config.env.insert("NOT_SET_TOKEN".to_owned(), "a token".to_owned());
    assert_eq!(bench.runner().probe().await.unset_keys, [""; 0]);
}

#[tokio::test]
async fn a_program_that_could_not_be_started_is_asked_again() {
    let bench = Bench::new("echo 1.0");
    let (runner, works) = (bench.runner(), fs::read(&bench.config.program).unwrap());
    fs::write(&bench.config.program, "no program\n").unwrap();
    assert!(runner.probe().await.problem.is_some());
    fs::write(&bench.config.program, works).unwrap();
    let repaired = runner.probe().await;
    assert_eq!((repaired.version.as_deref(), repaired.problem), (Some("1.0"), None));
}

#[tokio::test]
async fn a_probe_that_finds_nothing_says_so_and_one_that_hears_nothing_has_found_it() {
    let mut bench = Bench::new("exec sleep 60");
    bench.config.limits.probe_timeout_ms = 50;
    let silent = bench.runner().probe().await;
    assert_eq!((silent.program.as_ref(), silent.version), (Some(&bench.config.program), None));
    assert_eq!(silent.problem, None, "it can be run");
    bench.assert_nothing_left().await;
    bench.config.program = "no-such-program-anywhere".to_owned();
    let missing = bench.runner().probe().await;
    assert_eq!((missing.program, missing.version), (None, None));
    assert!(missing.problem.unwrap().contains("not found"));
}
