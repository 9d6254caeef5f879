//! Colours: on a terminal only, unless `--color` or a variable that programs agree on says otherwise.

use serde_json::json;

use crate::harness::TestServer;
use crate::terminal;

/// Every variable that decides about colours.
const VARIABLES: [&str; 5] = ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI", "TERM"];

fn command(server: &TestServer, args: &[&str], env: &[(&str, &str)]) -> std::process::Command {
    let mut command = server.command(args);
    for variable in VARIABLES {
        command.env_remove(variable);
    }
    command.env("TERM", "xterm").envs(env.iter().copied());
    command
}

fn in_a_pipe(server: &TestServer, args: &[&str], env: &[(&str, &str)]) -> String {
    let output = command(server, args, env).output().unwrap();
    assert!(output.status.success(), "{args:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn on_a_terminal(server: &TestServer, args: &[&str], env: &[(&str, &str)]) -> String {
    let (code, shown) = terminal::start(command(server, args, env)).finish();
    assert_eq!(code, 0, "{args:?}: {shown}");
    shown
}

const GREEN: &str = "\x1b[32m";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pipe_gets_colours_only_if_the_user_forces_them() {
    let server = TestServer::start();
    let id = server.launch_to_completion(&json!({ "deltas": 3 })).await;
    let plain = in_a_pipe(&server, &["tail", &id], &[]);
    assert!(plain.contains("— completed") && !plain.contains('\x1b'), "{plain}");
    for (args, env, colours) in [
        (&["--color", "always"][..], &[][..], true),
        (&["--color=always"], &[("NO_COLOR", "1")], true),
        (&[], &[("CLICOLOR_FORCE", "1")], true),
        (&[], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false),
        (&["--color", "never"], &[("CLICOLOR_FORCE", "1")], false),
        (&["--color", "always", "--json"], &[], false),
    ] {
        let shown = in_a_pipe(&server, &[&["tail", &id], args].concat(), env);
        assert_eq!(shown.contains(GREEN), colours, "{args:?} {env:?}: {shown}");
        assert_eq!(shown.contains('\x1b'), colours, "{args:?} {env:?}: {shown}");
    }
    // Help is printed before the flags are known.
    assert!(in_a_pipe(&server, &["--help", "--color", "always"], &[]).contains('\x1b'));
    assert!(!in_a_pipe(&server, &["--help", "--color=never"], &[("CLICOLOR_FORCE", "1")]).contains('\x1b'));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_terminal_gets_colours_unless_the_user_or_the_terminal_objects() {
    let server = TestServer::start();
    let id = server.launch_to_completion(&json!({ "deltas": 3 })).await;
    for (args, env, colours) in [
        (&[][..], &[][..], true),
        (&[], &[("NO_COLOR", "")], true),
        (&[], &[("NO_COLOR", "1")], false),
        (&[], &[("CLICOLOR", "0")], false),
        (&[], &[("TERM", "dumb")], false),
        (&["--color", "never"], &[], false),
        (&["--color", "always"], &[("NO_COLOR", "1")], true),
    ] {
        let shown = on_a_terminal(&server, &[&["tail", &id], args].concat(), env);
        assert_eq!(shown.contains(GREEN), colours, "{args:?} {env:?}: {shown:?}");
        assert_eq!(
            shown.contains("\x1b[3") || shown.contains("\x1b[2m"),
            colours,
            "{args:?} {env:?}: {shown:?}"
        );
    }
    let dumb = on_a_terminal(&server, &["tail", &id], &[("TERM", "dumb")]);
    assert!(!dumb.contains('\x1b'), "a dumb terminal cannot erase a line either: {dumb:?}");
}
