//! Commands that print or write files: the configuration, completions, and manual pages.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::harness::program;

/// Runs a command in its own home folder.
fn run(home: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(program());
    command.args(args).current_dir(home).env("HOME", home).env_remove("XDG_CONFIG_HOME");
    let output = command.env_remove("XDG_DATA_HOME").output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_files_are_printed_with_what_becomes_of_them() {
    let home = tempfile::tempdir().unwrap();
    let (here, user) =
        (home.path().join("tokenrail.toml"), home.path().join(".config/tokenrail/tokenrail.toml"));
    let line = |state: &str, file: &Path| format!("{state:<8}  {}\n", file.display());
    let (code, shown, said) = run(home.path(), &["config", "path"]);
    assert_eq!((code, shown), (0, line("absent", &here) + &line("absent", &user)));
    assert!(said.contains("tokenrail config init"), "{said}");
    let (code, shown, said) = run(home.path(), &["config", "init"]);
    assert_eq!((code, shown.trim_end()), (0, user.to_str().unwrap()), "{said}");
    let (_, shown, said) = run(home.path(), &["config", "path"]);
    assert_eq!((shown, &said[..]), (line("absent", &here) + &line("read", &user), ""));
    // Also if it is wrong.
    std::fs::write(&here, "[server\n").unwrap();
    let (code, shown, said) = run(home.path(), &["config", "path", "--json"]);
    assert_eq!(code, 0, "{said}");
    let files: Vec<Value> = shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&files[0]["state"], &files[1]["state"]), (&"read".into(), &"not read".into()));
}

#[test]
fn the_example_is_valid_and_overwrites_nothing() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("folder/example.toml");
    let name = file.to_str().unwrap();
    let (code, _, said) = run(home.path(), &["config", "init", "--config", name]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let (code, _, said) = run(home.path(), &["config", "init", "--config", name]);
    assert!(code == 1 && said.contains("already exists"), "{said}");
    let defaults = run(home.path(), &["config", "show"]);
    assert_eq!(run(home.path(), &["config", "show", "--config", name]), defaults, "all is commented out");
    // Every setting in it is valid.
    let text = std::fs::read_to_string(&file).unwrap();
    let used = text.lines().map(|line| match line.strip_prefix('#') {
        Some(setting) if !setting.starts_with(' ') => setting,
        _ => line,
    });
    std::fs::write(&file, used.collect::<Vec<_>>().join("\n")).unwrap();
    let (code, shown, said) = run(home.path(), &["config", "show", "--config", name]);
    assert_eq!(code, 0, "{said}");
    assert!(shown.contains("[agents.local]") && shown.contains("agents.example.com"), "{shown}");
}

#[test]
fn the_shown_settings_have_the_same_effect_and_no_secrets() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("tokenrail.toml");
    let written = "[limits]\npage_events = 7\n\
        [agents.a]\nprogram = \"p\"\nenv = { KEY = \"s3cret\" }\n\
        [agents.b]\nrunner = \"proxy\"\nurl = \"http://me:s3cret@box/\"\n\
        [agents.c]\nrunner = \"http\"\nformat = \"openai-responses\"\n\
        parameters = { temperature = 1.5, tools = [{ authorization = \"s3cret\" }] }\n\
        [agents.d]\nrunner = \"acp\"\nprogram = \"p\"\n\
        [agents.e]\nprogram = \"p\"\nformat = \"jsonl\"\n[agents.e.jsonl]\ntext = \"said\"\n";
    std::fs::write(&file, written).unwrap();
    let (code, shown, said) = run(home.path(), &["config", "show"]);
    assert_eq!(code, 0, "{said}");
    assert!(shown.contains("page_events = 7\n") && shown.contains("KEY = \"(hidden)\""), "{shown}");
    assert!(shown.contains("temperature = 1.5") && !shown.contains("s3cret"), "{shown}");
    let copy = home.path().join("copy.toml");
    std::fs::write(&copy, &shown).unwrap();
    let (code, again, said) = run(home.path(), &["config", "show", "--config", copy.to_str().unwrap()]);
    assert_eq!((code, again), (0, shown), "{said}");
    let (_, shown, _) = run(home.path(), &["config", "show", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&shown).unwrap()["limits"]["page_events"], 7);
    std::fs::write(&file, "[server]\nlisen = 1\n").unwrap();
    assert_eq!(run(home.path(), &["config", "show"]).0, 2);
}

#[test]
fn completions_and_manual_pages_are_made_for_packagers() {
    let home = tempfile::tempdir().unwrap();
    // A wrong configuration does not matter.
    std::fs::write(home.path().join("tokenrail.toml"), "[server\n").unwrap();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let (code, shown, said) = run(home.path(), &["completions", shell]);
        assert_eq!(code, 0, "{said}");
        assert!(shown.contains("tokenrail") && shown.contains("detach"), "{shell}: {shown}");
        assert!(!shown.contains("supervise"), "{shell} must not offer internal commands: {shown}");
    }
    let (code, _, said) = run(home.path(), &["man", "pages"]);
    assert_eq!(code, 0, "{said}");
    let page = |name: &str| std::fs::read_to_string(home.path().join("pages").join(name)).unwrap();
    assert!(page("tokenrail.1").contains(".TH tokenrail 1"), "{}", page("tokenrail.1"));
    assert!(page("tokenrail-run.1").contains("\\-\\-detach"));
    assert!(!home.path().join("pages/tokenrail-supervise.1").exists(), "internal commands have no page");
}
