use super::*;

fn load(file: Option<&str>, env: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenrail.toml");
    let config = file.map(|text| {
        std::fs::write(&path, text).unwrap();
        path
    });
    let mut env: BTreeMap<String, String> =
        env.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    env.insert("HOME".to_owned(), folder.path().to_string_lossy().into_owned());
    Config::load(&Flags { config, ..Flags::default() }, &env)
}

fn check_wrong(file: &str, expected: &str) {
    let error = load(Some(file), &[]).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn without_a_file_there_is_claude_and_the_demo() {
    let config = load(None, &[]).unwrap();
    assert_eq!(config.agents.keys().collect::<Vec<_>>(), ["claude-code", "demo"]);
    assert_eq!(config.listen.to_string(), DEFAULT_LISTEN);
    assert_eq!(config.limits.running_agents, 64);
    assert!(config.data_dir.ends_with(".local/share/tokenrail"), "{:?}", config.data_dir);
}

#[test]
fn a_wrong_key_is_told_with_its_line_and_the_right_one() {
    check_wrong("[server]\n\nlisen = \"x\"\n", "tokenrail.toml:3: unknown field `lisen`");
    check_wrong("[server]\nlisen = \"x\"\n", "did you mean `listen`?");
    check_wrong("[limits]\nrunning_agent = 3\n", "did you mean `running_agents`?");
    check_wrong("[limits]\nrunning_agents = \"many\"\n", "tokenrail.toml:2: invalid type");
    check_wrong("[storage]\nsynchronous = \"ful\"\n", "did you mean `full`?");
    check_wrong("[agents.x]\nrunner = \"proces\"\n", "did you mean \"process\"?");
    check_wrong("[agents.x]\nprogram = \"p\"\nformat = \"claud\"\n", "did you mean \"claude\"?");
    check_wrong("[agents.x]\nprogram = \"p\"\nprompt = \"argv\"\n", "never goes into argv");
    check_wrong("[server]\ndefault_agent = \"demos\"\n", "did you mean \"demo\"?");
    check_wrong("[server\n", "tokenrail.toml:1:");
    check_wrong("[limits]\npage_events = 0\n", "limits.page_events is 0; it must be at least 1");
    assert!(load(Some("[limits]\ncancel_grace_s = 0\n"), &[]).is_ok());
}

#[test]
fn the_environment_goes_over_the_file_and_flags_over_both() {
    let file = "[server]\nlisten = \"127.0.0.1:1\"\n[limits]\npage_events = 7\n";
    let env = [("TOKENRAIL_SERVER_LISTEN", "127.0.0.1:2"), ("TOKENRAIL_LIMITS_QUEUED_TURNS", "3")];
    let config = load(Some(file), &env).unwrap();
    assert_eq!((config.listen.port(), config.limits.page_events, config.limits.queued_turns), (2, 7, 3));
    let flags = Flags { listen: Some("127.0.0.1:3".into()), ..Flags::default() };
    let env = BTreeMap::from([("HOME".to_owned(), "/nowhere".to_owned())]);
    assert_eq!(Config::load(&flags, &env).unwrap().listen.port(), 3);
}

#[test]
fn a_wrong_variable_is_told_by_its_name() {
    let error = |name, value| load(None, &[(name, value)]).unwrap_err().to_string();
    assert!(error("TOKENRAIL_LIMITS_PAGE_EVENT", "1").contains("did you mean `page_events`?"));
    assert!(error("TOKENRAIL_LIMITS_PAGE_EVENTS", "x").starts_with("TOKENRAIL_LIMITS_PAGE_EVENTS: invalid"));
    assert!(error("TOKENRAIL_LIMIT_PAGE_EVENTS", "1").contains("did you mean TOKENRAIL_LIMITS_…?"));
}

#[test]
fn without_a_token_only_loopback_is_served() {
    let flags = Flags { listen: Some("0.0.0.0:7117".into()), insecure_no_auth: true, ..Flags::default() };
    let env = BTreeMap::from([("HOME".to_owned(), "/nowhere".to_owned())]);
    assert!(matches!(Config::load(&flags, &env), Err(ConfigError::InsecureListen(_))));
}
