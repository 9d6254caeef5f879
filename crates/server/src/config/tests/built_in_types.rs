use super::*;

#[test]
fn a_block_with_the_name_of_a_built_in_type_changes_only_what_it_names() {
    let built_in = load(None, &[]).unwrap().agents;
    let file = "[agents.claude-code]\ncwd_roots = [\"/srv\"]\n[agents.gemini-acp]\nprogram = \"mine\"\n\
                [agents.anthropic-api]\nmodel = \"small\"\n[agents.opencode-acp]\nrunner = \"acp\"\nrest_s = 7\n\
                [agents.demo]\nspeed = 2.0\n";
    let agents = load(Some(file), &[]).unwrap().agents;
    let process = |agents: &BTreeMap<String, AgentConfig>, name: &str| match &agents[name].runner {
        RunnerConfig::Process(process) => process.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(agents["claude-code"].format.name, "claude-two-way");
    assert_eq!(agents["claude-code"].runner, built_in["claude-code"].runner);
    assert_eq!(agents["claude-code"].cwd_roots, [Path::new("/srv")]);
    let mine = ProcessBlock { program: "mine".to_owned(), ..process(&built_in, "gemini-acp") };
    assert_eq!(process(&agents, "gemini-acp"), mine);
    let opencode = process(&agents, "opencode-acp");
    assert_eq!(
        (opencode.args, opencode.converse.unwrap().rest_s),
        (process(&built_in, "opencode-acp").args, 7)
    );
    assert!(
        matches!(&agents["anthropic-api"].runner, RunnerConfig::Http(http) if http.model.as_deref() == Some("small"))
    );
    assert!(matches!(&agents["demo"].runner, RunnerConfig::Replay(ReplayBlock { speed: 2.0, .. })));
}

/// Arguments that were written for the format of earlier versions must not reach a program that expects others.
#[test]
fn arguments_of_an_interactive_built_in_type_need_its_format() {
    let block = "[agents.claude-code]\nargs = [\"-p\"]\n";
    check_wrong(
        block,
        "tokenrail.toml:2: agents.claude-code: args: set format too, because arguments depend on it",
    );
    let process = |file: &str| match load(Some(file), &[]).unwrap().agents["claude-code"].runner.clone() {
        RunnerConfig::Process(process) => process,
        other => panic!("{other:?}"),
    };
    let interactive = process(&format!("{block}format = \"claude-two-way\"\n"));
    assert!(interactive.converse.is_some() && interactive.program == "claude");
    let one_way = format!("{block}format = \"claude\"\n");
    check_wrong(&one_way, "program is missing");
    assert!(process(&format!("{one_way}program = \"claude\"\n")).converse.is_none());
}
