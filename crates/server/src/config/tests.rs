mod built_in_types;
mod cluster;
mod storage;
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

fn listen(text: &str, by: &'static str) -> Given {
    Given { text: text.to_owned(), by }
}

fn check_wrong(file: &str, expected: &str) {
    let error = load(Some(file), &[]).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn without_a_file_there_are_the_known_agents_and_the_demo() {
    let config = load(None, &[]).unwrap();
    assert_eq!(
        config.agents.keys().collect::<Vec<_>>(),
        [
            "anthropic-api",
            "claude-code",
            "claude-code-one-way",
            "codex",
            "codex-one-way",
            "demo",
            "gemini",
            "gemini-acp",
            "openai-chat",
            "openai-responses",
            "opencode",
            "opencode-acp",
        ]
    );
    assert_eq!(config.listen.to_string(), DEFAULT_LISTEN);
    assert_eq!(config.limits.running_agents, 64);
    assert!(config.data_dir.ends_with(".local/share/tokenrail"), "{:?}", config.data_dir);
}

/// Agents with these types exist, and must continue after an upgrade.
#[test]
fn the_former_names_of_built_in_types_work_unless_a_block_has_the_name() {
    let file = "[server]\ndefault_agent = \"codex-app-server\"\n\
                [agents.claude-two-way]\nprogram = \"mine\"\n[agents.codex]\nprogram = \"other\"\n";
    let config = load(Some(file), &[]).unwrap();
    assert_eq!(config.former_agents.keys().collect::<Vec<_>>(), ["codex-app-server"]);
    let former = &config.former_agents["codex-app-server"];
    assert_eq!(former.format.name, "codex-app-server");
    assert_eq!(former.runner, load(None, &[]).unwrap().agents["codex"].runner);
}

/// Launches that name no type ask for permission.
#[test]
fn the_default_agent_type_is_interactive() {
    let config = load(None, &[]).unwrap();
    let default = &config.agents[config.default_agent.as_deref().unwrap()];
    assert!(default.format.abilities.permissions);
}

#[test]
fn a_wrong_key_is_told_with_its_line_and_the_right_one() {
    check_wrong("[server]\n\nlisen = \"x\"\n", "tokenrail.toml:3: unknown field `lisen`");
    check_wrong("[server]\nlisen = \"x\"\n", "did you mean `listen`?");
    check_wrong("[limits]\nrunning_agent = 3\n", "did you mean `running_agents`?");
    check_wrong("[limits]\nrunning_agents = \"many\"\n", "tokenrail.toml:2: invalid type");
    check_wrong("[server\n", "tokenrail.toml:1:");
    assert!(load(Some("[limits]\ncancel_grace_s = 0\n"), &[]).is_ok());
    check_wrong("[limits]\nkill_grace_s = 0\n", "limits.kill_grace_s: 0 is too small; it must be at least 1");
}

#[expect(clippy::too_many_lines, reason = "one case after the other")]
#[test]
fn a_wrong_value_is_told_with_its_line_too() {
    let cases = [
        (
            "[agents.x]\nrunner = \"proces\"\n",
            "tokenrail.toml:2: agents.x: runner: unknown runner \"proces\"; did you mean \"process\"?",
        ),
        (
            "[agents.x]\nprogram = \"p\"\nformat = \"claud\"\n",
            "toml:3: agents.x: format: unknown format \"claud\"; did you mean \"claude\"?",
        ),
        (
            "[agents.x]\nprogram = \"p\"\nprompt = \"argv\"\n",
            "toml:3: agents.x: prompt: only \"stdin\" is supported",
        ),
        (
            "[agents.x]\nprogram = \"p\"\nformat = \"jsonl\"\n[agents.x.jsonl]\n\ntexts = \"t\"\n",
            "toml:6: unknown field `texts`, expected one of",
        ),
        (
            "[agents.x]\nprogram = \"p\"\n[agents.x.jsonl]\ntext = \"t\"\n",
            "toml:3: agents.x: jsonl: not used with format = \"claude\", only with \"jsonl\"",
        ),
        ("\n[agents.x]\nargs = []\n", "toml:2: agents.x: program is missing"),
        (
            "[agents.x]\nrunner = \"acp\"\nprogram = \"p\"\nformat = \"gemini\"\n",
            "toml:4: agents.x: format: runner = \"acp\" requires format = \"acp\", not \"gemini\"",
        ),
        (
            "[agents.x]\nformat = \"claude-two-way\"\nprogram = \"p\"\nfiles = true\n",
            "toml:4: agents.x: files: not used with format = \"claude-two-way\", only with \"acp\"",
        ),
        (
            "[agents.x]\nformat = \"codex-app-server\"\nprogram = \"p\"\nrest_s = 5\n",
            "toml:4: agents.x: rest_s: not used with format = \"codex-app-server\": its process exits at the end of each turn",
        ),
        (
            "[agents.x]\nprogram = \"p\"\nrest_s = 5\n",
            "toml:3: agents.x: rest_s: not used with format = \"claude\", which is not interactive",
        ),
        ("[agents.x]\nrunner = \"proxy\"\nurl = \"ftp://x\"\n", "toml:3: agents.x: url: \"ftp://x\""),
        (
            "[agents.x]\nrunner = \"replay\"\nspeed = 2.0\nprogram = \"p\"\n",
            "toml:4: agents.x: program: not used with runner = \"replay\"; keys of this runner: runner, format, jsonl, cwd_roots, transcript, speed",
        ),
        (
            "[agents.x]\nprogram = \"p\"\nurl = \"http://x\"\n",
            "toml:3: agents.x: url: not used with runner = \"process\"",
        ),
        (
            "[agents.x]\nprogram = \"./a\"\n",
            "toml:2: agents.x: program: \"./a\" must be a name on PATH or an absolute path; did you mean \"/",
        ),
        (
            "[agents.x]\nprogram = \"\"\n",
            "toml:2: agents.x: program: \"\" must be a name on PATH or an absolute path",
        ),
        (
            "[agents.x]\nrunner = \"replay\"\ntranscript = \"/nope\"\n",
            "toml:3: agents.x: transcript: cannot read /nope: No such file",
        ),
        (
            "[agents.x]\nrunner = \"replay\"\ntranscript = \"/\"\n",
            "toml:3: agents.x: transcript: cannot read /: it is a folder",
        ),
        (
            "[limits]\nturn_timeout_s = 9223372036854775807\n",
            "toml:2: limits.turn_timeout_s: 9223372036854775807 is too large; it must be at most 315360000 (ten years)",
        ),
        (
            "[limits]\n\nidempotency_hours = 87601\n",
            "toml:3: limits.idempotency_hours: 87601 is too large; it must be at most 87600",
        ),
        ("[limits]\nrunning_agents = 9223372036854775807\n", "toml:2: limits.running_agents: "),
        (
            "[agents]\nx = { runner = \"replay\",\n speed = -1.0 }\n",
            "toml:3: agents.x: speed: must be a number",
        ),
        (
            "[server]\n\npublic_url = \"https://x/api\"\n",
            "toml:3: server.public_url: the path must not begin with \"api\", which is a path of the server itself",
        ),
        (
            "[server]\n\ndefault_agent = \"demos\"\n",
            "toml:3: server.default_agent: unknown agent type \"demos\"; did you mean \"demo\"?",
        ),
        ("[server]\nlisten = \"localhost\"\n", "toml:2: server.listen: invalid address \"localhost\""),
        (
            "[server]\nallowed_origins = [\"https://app.example/\"]\n",
            "toml:2: server.allowed_origins: invalid origin \"https://app.example/\"",
        ),
        (
            "[server]\nallowed_origins = [\"https://*.example\"]\n",
            "toml:2: server.allowed_origins: invalid origin \"https://*.example\"",
        ),
        (
            "[server]\nallowed_origins = [\"https://App.example\"]\n",
            "toml:2: server.allowed_origins: invalid origin \"https://App.example\"",
        ),
        (
            "[server]\nallowed_origins = [\"http://app.example:80\"]\n",
            "toml:2: server.allowed_origins: invalid origin \"http://app.example:80\"",
        ),
        (
            "[server]\nallowed_hosts = [\"http://box\"]\n",
            "toml:2: server.allowed_hosts: invalid host \"http://box\"",
        ),
        (
            "[limits]\nqueued_turns = 1\npage_events = 0\n",
            "toml:3: limits.page_events: 0 is too small; it must be at least 1",
        ),
    ];
    for (file, expected) in cases {
        check_wrong(file, expected);
    }
    let env = [("TOKENRAIL_LIMITS_PAGE_EVENTS", "0")];
    let error = load(Some("[limits]\npage_events = 7\n"), &env).unwrap_err().to_string();
    assert_eq!(
        error,
        "TOKENRAIL_LIMITS_PAGE_EVENTS: limits.page_events: 0 is too small; it must be at least 1"
    );
    let flags = Flags { listen: Some(listen("127.0.0.1:7", "--listen")), ..Flags::default() };
    let env = BTreeMap::from([
        ("TOKENRAIL_SERVER_LISTEN".to_owned(), "foo".to_owned()),
        ("HOME".to_owned(), "/".to_owned()),
    ]);
    let error = Config::load(&flags, &env).unwrap_err().to_string();
    assert!(error.starts_with("TOKENRAIL_SERVER_LISTEN: server.listen: invalid address \"foo\""), "{error}");
    let flags = Flags { listen: Some(listen("here", "--listen")), ..Flags::default() };
    let error = Config::load(&flags, &BTreeMap::new()).unwrap_err().to_string();
    assert!(error.starts_with("--listen: invalid address \"here\""), "{error}");
    let flags = Flags { listen: Some(listen("here", "TOKENRAIL_LISTEN")), ..Flags::default() };
    let error = Config::load(&flags, &BTreeMap::new()).unwrap_err().to_string();
    assert!(error.starts_with("TOKENRAIL_LISTEN: invalid address \"here\""), "{error}");
}

#[test]
fn what_a_block_leaves_out_is_what_its_format_needs() {
    let file = "[agents.a]\nprogram = \"p\"\n[agents.b]\nprogram = \"p\"\nformat = \"jsonl\"\n\
                [agents.b.jsonl]\ntext = \"said.text\"\nresults = []\n";
    let config = load(Some(file), &[]).unwrap();
    let process = |name: &str| match &config.agents[name].runner {
        RunnerConfig::Process(process) => process.clone(),
        other => panic!("{other:?}"),
    };
    let claude = process("claude-code-one-way");
    assert_eq!(process("a"), ProcessBlock { program: "p".to_owned(), ..claude });
    assert_eq!((process("b").args, process("b").interrupt), (Vec::new(), false));
    let mapping = &config.agents["b"].jsonl;
    assert_eq!((&*mapping.text, &*mapping.kind, mapping.results.len()), ("said.text", "type", 0));
}

#[test]
fn a_model_behind_an_api_gets_a_key_only_where_that_is_written() {
    let file = "[agents.a]\nrunner = \"http\"\nformat = \"anthropic\"\n\
                [agents.b]\nrunner = \"http\"\nformat = \"openai-chat\"\nbase_url = \"http://box:1/v1\"\n\
                [agents.c]\nrunner = \"http\"\nformat = \"openai-chat\"\nbase_url = \"http://box:1/v1\"\n\
                api_key_env = \"BOX_KEY\"\nparameters = { temperature = 1.5, stop = [\"x\"] }\n";
    let config = load(Some(file), &[]).unwrap();
    let http = |name: &str| match &config.agents[name].runner {
        RunnerConfig::Http(http) => http.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(http("a"), http("anthropic-api"));
    assert_eq!(http("a").api_key_env.as_deref(), Some("ANTHROPIC_API_KEY"));
    assert_eq!((&*http("b").base_url, http("b").api_key_env), ("http://box:1/v1", None));
    assert_eq!(http("c").api_key_env.as_deref(), Some("BOX_KEY"));
    let parameters = serde_json::json!({ "temperature": 1.5, "stop": ["x"] });
    assert_eq!(Some(&http("c").parameters), parameters.as_object());
    let in_clear =
        config.warnings().into_iter().filter(|(_, warning)| warning.contains("http sends the API key"));
    assert_eq!(in_clear.map(|(name, _)| name).collect::<Vec<_>>(), ["c"]);
}

#[test]
fn what_is_wrong_with_a_model_behind_an_api_is_told_with_its_line() {
    let cases = [
        ("\n", "agents.x: format is missing"),
        (
            "format = \"openai\"\n",
            "toml:3: agents.x: format: unknown format \"openai\" (available: acp, anthropic",
        ),
        (
            "format = \"gemini\"\n",
            "(available with runner = \"http\": anthropic, openai-chat, openai-responses)",
        ),
        ("format = \"anthropic\"\nbase_url = \"box\"\n", "toml:4: agents.x: base_url: not a valid URL"),
        (
            "format = \"anthropic\"\nbase_url = \"ftp://box\"\n",
            "base_url: must begin with http:// or https://",
        ),
        (
            "format = \"anthropic\"\nbase_url = \"https://me:key@box\"\n",
            "base_url: must not contain a user name or password",
        ),
        ("format = \"anthropic\"\nbase_url = \"https://box/?key=k\"\n", "base_url: must not have a query"),
        ("format = \"anthropic\"\napi_key_env = \"\"\n", "toml:4: agents.x: api_key_env: must be the name"),
        ("format = \"anthropic\"\nmax_tokens = 0\n", "toml:4: agents.x: max_tokens: 0 is too small"),
        (
            "format = \"anthropic\"\nurl = \"http://x\"\n",
            "toml:4: agents.x: url: not used with runner = \"http\"",
        ),
    ];
    for (rest, expected) in cases {
        check_wrong(&format!("[agents.x]\nrunner = \"http\"\n{rest}"), expected);
    }
    let wrong = "[agents.x]\nprogram = \"p\"\nbase_url = \"http://x\"\n";
    check_wrong(wrong, "toml:3: agents.x: base_url: not used with runner = \"process\"");
}

#[test]
fn any_agent_of_the_agent_client_protocol_is_one_block() {
    let file = "[agents.x]\nrunner = \"acp\"\nprogram = \"p\"\nargs = [\"--acp\"]\nfiles = false\n";
    let config = load(Some(file), &[("HOME", "/h")]).unwrap();
    let agent = &config.agents["x"];
    let RunnerConfig::Process(process) = &agent.runner else { panic!("a process") };
    let converse = process.converse.unwrap();
    assert_eq!((agent.format.name, converse.protocol), ("acp", tokenrail_runner::Protocol::Acp));
    assert!(!converse.files && process.interrupt && process.model_args.is_empty());
}

#[test]
fn a_value_of_the_wrong_type_is_told_what_to_write() {
    check_wrong("[limits]\npage_events = \"8\"\n", "expected a whole number; remove the quotes: 8");
    check_wrong("[limits]\npage_events = -8\n", "; use a whole number, 0 or greater");
    check_wrong("[limits]\npage_events = 8.5\n", "; use a whole number, 0 or greater");
    check_wrong("[server]\nlisten = 7117\n", "expected a string; add quotes");
    check_wrong("[server]\nallowed_hosts = \"box\"\n", "; use a list: [\"box\"]");
    check_wrong("[agents.x]\nprogram = \"p\"\ninterrupt = \"true\"\n", "toml:3: invalid type");
    check_wrong("[agents.x]\nprogram = \"p\"\ninterrupt = \"true\"\n", "; remove the quotes: true");
    check_wrong("[agents.x]\nrunner = \"replay\"\nspeed = \"2\"\n", "; remove the quotes: 2");
}

#[test]
fn the_environment_goes_over_the_file_and_flags_over_both() {
    let file = "[server]\nlisten = \"127.0.0.1:1\"\n[limits]\npage_events = 7\n";
    let env = [("TOKENRAIL_SERVER_LISTEN", "127.0.0.1:2"), ("TOKENRAIL_LIMITS_QUEUED_TURNS", "3")];
    let config = load(Some(file), &env).unwrap();
    assert_eq!((config.listen.port(), config.limits.page_events, config.limits.queued_turns), (2, 7, 3));
    let flags = Flags { listen: Some(listen("127.0.0.1:3", "--listen")), ..Flags::default() };
    let env = BTreeMap::from([("HOME".to_owned(), "/nowhere".to_owned())]);
    assert_eq!(Config::load(&flags, &env).unwrap().listen.port(), 3);
}

#[test]
fn the_limits_of_a_run_may_be_none() {
    let none = "[limits]\nagent_processes = 0\nagent_memory_bytes = 0\nagent_nice = 0\n";
    let limits = load(Some(none), &[]).unwrap().limits;
    assert_eq!((limits.agent_processes, limits.agent_memory_bytes, limits.agent_nice), (0, 0, 0));
    let limits = load(None, &[]).unwrap().limits;
    assert_eq!((limits.agent_processes, limits.agent_memory_bytes, limits.agent_nice), (1000, 0, 5));
    let error = load(Some("[limits]\nagent_nice = 20\n"), &[]).unwrap_err().to_string();
    assert!(error.contains("limits.agent_nice: 20 is too large; it must be at most 19"), "{error}");
}

#[test]
fn a_wrong_variable_is_told_by_its_name() {
    let error = |name, value| load(None, &[(name, value)]).unwrap_err().to_string();
    assert!(error("TOKENRAIL_LIMITS_PAGE_EVENT", "1").contains("did you mean TOKENRAIL_LIMITS_PAGE_EVENTS?"));
    let far = error("TOKENRAIL_LIMITS_BANANAS", "1");
    assert!(
        far.starts_with("TOKENRAIL_LIMITS_BANANAS: no such setting; the most similar ones are TOK"),
        "{far}"
    );
    assert_eq!(far.matches("TOKENRAIL_LIMITS_").count(), 4, "not all settings: {far}");
    assert!(error("TOKENRAIL_TOKENS", "1").ends_with("no such setting; did you mean TOKENRAIL_TOKEN?"));
    assert!(error("TOKENRAIL_LIMITS_PAGE_EVENTS", "x").starts_with("TOKENRAIL_LIMITS_PAGE_EVENTS: invalid"));
    assert!(error("TOKENRAIL_SERVER_ALLOWED_HOSTS", "box").contains("use a list: [\"box\"]"));
    let digits = load(None, &[("TOKENRAIL_SERVER_DATA_DIR", "2026")]).unwrap();
    assert!(digits.data_dir.ends_with("2026"), "a name of digits is a name");
    assert!(error("TOKENRAIL_LIMIT_PAGE_EVENTS", "1").contains("did you mean TOKENRAIL_LIMITS_…?"));
}

#[test]
fn without_a_token_only_loopback_is_served() {
    let listen = Some(listen("0.0.0.0:7117", "--listen"));
    let flags = Flags { listen, insecure_no_auth: true, ..Flags::default() };
    let env = BTreeMap::from([("HOME".to_owned(), "/nowhere".to_owned())]);
    assert!(matches!(Config::load(&flags, &env), Err(ConfigError::InsecureListen(_))));
}

#[test]
fn an_empty_data_folder_is_refused_with_its_place() {
    check_wrong("[server]\ndata_dir = \"\"\n", "tokenrail.toml:2: server.data_dir: must not be empty");
}

#[test]
fn a_wrong_value_in_a_variable_of_small_letters_is_told_with_it() {
    let error = load(Some("[server]\n"), &[("TOKENRAIL_server_listen", "here")]).unwrap_err().to_string();
    assert!(error.starts_with("TOKENRAIL_server_listen: server.listen"), "{error}");
}

#[tokio::test]
async fn the_longest_durations_are_taken_and_can_be_calculated_with() {
    let keys = LimitsConfig::default().to_toml();
    let keys = keys.lines().filter_map(|line| line.split_once(" = ")).map(|(key, _)| key);
    let longest = keys.filter_map(|key| {
        let hours = key.ends_with("_hours").then_some(87_600_u64);
        hours.or(key.ends_with("_s").then_some(315_360_000)).map(|most| format!("{key} = {most}\n"))
    });
    let config = load(Some(&format!("[limits]\n{}", longest.collect::<String>())), &[]).unwrap();
    let limits = crate::compose::limits::application_limits(&config.limits);
    assert_eq!(limits.commands.idempotency.as_secs(), limits.run.turn_timeout.as_secs());
    let means = crate::compose::Means {
        watcher: crate::compose::watcher(&config).unwrap(),
        supervisor: crate::compose::supervisor(&config).unwrap(),
    };
    crate::compose::agent_type(&config, &config.agents["claude-code"], &means).unwrap();
}

#[test]
fn a_missing_root_is_a_warning() {
    let config = load(Some("[agents.x]\nprogram = \"p\"\ncwd_roots = [\"/\", \"/nope\"]\n"), &[]).unwrap();
    let warning = "cwd_roots: /nope does not exist or is not a folder; agents cannot work there";
    assert_eq!(config.warnings(), [("x", warning.to_owned())]);
}
