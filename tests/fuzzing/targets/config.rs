//! A configuration is accepted, or refused with the position of the error.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;

use tempfile::TempDir;
use tokenrail_server::{Config, ConfigError, Flags};

pub(crate) const WORDS: &[&str] = &[
    "[server]\n",
    "[storage]\n",
    "[limits]\n",
    "[agents.x]\n",
    "[agents.\"a b\"]\n",
    "[[agents]]\n",
    "listen = ",
    "data_dir = ",
    "allowed_hosts = ",
    "allowed_origins = ",
    "default_agent = ",
    "synchronous = ",
    "password_file = ",
    "durability = ",
    "postgres://",
    "running_agents = ",
    "cancel_grace_s = ",
    "runner = \"proxy\"\n",
    "runner = \"replay\"\n",
    "program = \"x\"\n",
    "url = \"http://a\"\n",
    "speed = ",
    "args = [\"-p\"]\n",
    "cwd_roots = [\"~/a\"]\n",
    "format = \"claude\"\n",
    "env = {A = \"b\"}\n",
    "\"\"\"",
    "'''",
    "\\u0000",
    "nan",
    "inf",
    "-1",
    "0",
    "1e400",
    "99999999999999999999",
    "true",
    "\"full\"",
    "\"127.0.0.1:0\"",
    "\"demo\"",
    "\n",
    "\r",
    "#",
    ".",
    " = ",
    "\"",
    "[",
    "]",
    "{",
    "}",
    "\n%%\n",
    "SERVER_LISTEN=",
    "LIMITS_HEADERS=",
    "STORAGE_SYNCHRONOUS=",
    "SERVER_ALLOWED_HOSTS=[\"a\"]",
];

thread_local! {
    static FOLDER: RefCell<TempDir> = RefCell::new(tempfile::tempdir().expect("a folder"));
}

/// The input is a file, and after a line `%%` environment variables, one per line.
pub(crate) fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (file, variables) = text.split_once("\n%%\n").unwrap_or((&text, ""));
    let mut env = BTreeMap::from([("HOME".to_owned(), "/home/somebody".to_owned())]);
    for (name, value) in variables.lines().filter_map(|line| line.split_once('=')) {
        env.insert(format!("TOKENRAIL_{name}"), value.to_owned());
    }
    let path = FOLDER.with_borrow(|folder| folder.path().join("tokenrail.toml"));
    std::fs::write(&path, file).expect("the folder can be written");
    let flags = Flags { config: Some(path.clone()), ..Flags::default() };
    match Config::load(&flags, &env) {
        Ok(config) => check(&config, path),
        Err(ConfigError::File { path: place, line, message }) => {
            assert_eq!(place, path);
            let lines = 1 + file.matches('\n').count();
            assert!((1..=lines).contains(&line), "line {line} of {lines}: {message}");
            assert!(!message.trim().is_empty());
        }
        Err(ConfigError::Variable { variable, message }) => {
            assert!(!variables.is_empty(), "{variable}: {message}, and there is no variable");
            assert!(variable == "the environment" || env.contains_key(&variable), "{variable}: {message}");
        }
        Err(other) => panic!("without a place: {other}"),
    }
}

fn check(config: &Config, path: PathBuf) {
    assert_eq!(config.file, Some(path));
    assert!(config.data_dir.is_absolute(), "{}", config.data_dir.display());
    assert!(!config.insecure_no_auth, "no file can say that");
    let default = config.default_agent.as_ref().expect("there is always one");
    assert!(config.agents.contains_key(default), "{default:?}");
}
