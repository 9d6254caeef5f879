//! S11, S15: what the server passes to the agent's program, and what the program can see.

use serde_json::{Value, json};

use crate::harness::{TestServer, fake_agent, fake_config, text_of};
use crate::started::Started;

/// A type `echo` with a fixed script, so that a test can use any prompt.
fn echo_config(script: &Value) -> String {
    let script = toml_text(&script.to_string());
    format!(
        "[agents.echo]\nprogram = \"{}\"\npass_env = []\nenv = {{ FAKE_AGENT_SCRIPT = {script} }}\n",
        fake_agent().display()
    )
}

/// A JSON string of printable ASCII is also a TOML string.
fn toml_text(text: &str) -> String {
    Value::from(text).to_string()
}

#[tokio::test]
async fn s11_a_prompt_reaches_standard_input_byte_for_byte_and_the_arguments_never() {
    let folder = tempfile::tempdir().unwrap();
    let (copy, touched) = (folder.path().join("copy"), folder.path().join("touched"));
    let script = json!({ "mode": "env_dump", "copy_prompt": copy });
    let server = TestServer::start_with(&(echo_config(&script) + "[limits]\nrequest_bytes = 16777216\n"));
    let touch = touched.display();
    let prompts = [
        format!("; touch {touch}"),
        format!("$(touch {touch})"),
        format!("`touch {touch}`"),
        format!("x\" && touch {touch} && echo \""),
        format!("' | touch {touch} #"),
        format!("a\nb\r\nc\n\ntouch {touch}\n"),
        "--settings {\"hooks\":{}}".to_owned(),
        "--dangerously-skip-permissions".to_owned(),
        "-p".to_owned(),
        "--".to_owned(),
        "@/etc/passwd".to_owned(),
        "%s%n%x %PATH% ${HOME} ~ * ? [a] {session} {model}".to_owned(),
        "a\0b".to_owned(),
        "\u{1b}]0;title\u{7}\u{202e}\u{feff}\u{2028} 🙂 \u{7f}".to_owned(),
        " \t leading and trailing \t ".to_owned(),
        "x".repeat(10 << 20),
    ];
    let mut arguments = Vec::new();
    for prompt in &prompts {
        let shown: String = prompt.chars().take(40).collect();
        let id = server.launch_as("echo", prompt).await;
        server.wait_for_status(&id, "completed").await;
        assert!(std::fs::read(&copy).unwrap() == prompt.as_bytes(), "{shown:?} came otherwise");
        std::fs::remove_file(&copy).unwrap();
        let seen: Value = serde_json::from_str(&text_of(&server.events(&id).await)).unwrap();
        arguments.push(seen["cmdline"].clone());
        let agent = server.get(&format!("/api/agents/{id}")).await;
        assert!(agent["prompt"] == **prompt, "{shown:?} is told as it was sent");
    }
    assert!(!touched.exists(), "no prompt was run");
    arguments.dedup();
    assert_eq!(arguments.len(), 1, "the same arguments whatever the prompt: {arguments:?}");

    let half = b"{\"type\":\"echo\",\"prompt\":\"a \\ud800 b\"}".to_vec();
    let request =
        server.request(reqwest::Method::POST, "/api/agents").header("content-type", "application/json");
    assert_eq!(request.body(half).send().await.unwrap().status(), 422, "half a character is no text");
}

#[tokio::test]
async fn s15_an_agent_sees_what_it_was_given_and_nothing_of_the_server() {
    let mut server = TestServer::start_with(&format!(
        "[agents.fake]\nprogram = \"{}\"\npass_env = [\"PASSED\", \"NOT_THERE\"]\nenv = {{ FIXED = \"value\" }}\n",
        fake_agent().display()
    ));
    server.kill_9();
    let env =
        [("PASSED", "through"), ("SECRET", "of the server"), ("CLAUDECODE", "1"), ("LD_LIBRARY_PATH", "/x")];
    let started = Started::start_on(server, &[], &[], &env);
    let server = &started.server;
    let id = server.launch_to_completion(&json!({ "mode": "env_dump" })).await;
    let seen: Value = serde_json::from_str(&text_of(&server.events(&id).await)).unwrap();
    let marker = format!("{id}-1");
    assert_eq!(seen["env"], json!({ "PASSED": "through", "FIXED": "value", "TOKENRAIL_RUN": marker }));
    assert_eq!(seen["umask"], "0077");
    assert_eq!(seen["core_limit"], 0, "secrets in its memory do not go to the disk");
    assert_eq!(seen["oom_score"], "500", "without memory it goes before its server");
    let own = rustix::process::getpriority_process(None).unwrap();
    assert_eq!(seen["nice"], 19.min(own + 5), "where the processor is short, its server comes first");
    assert_eq!(seen["cwd"], server.data_dir().join("work").join(&id).to_string_lossy().into_owned());
    let fds = seen["fds"].as_object().unwrap();
    assert_eq!(fds.keys().collect::<Vec<_>>(), ["0", "1", "2"], "no descriptor of the server: {fds:?}");
    let run = server.data_dir().join("runs").join(&marker);
    assert_eq!(
        fds["0"].as_str().unwrap().trim_end_matches(" (deleted)"),
        run.join("stdin").to_string_lossy()
    );
    assert!(["1", "2"].iter().all(|fd| fds[*fd].as_str().unwrap().starts_with("pipe:")), "{fds:?}");
}

#[tokio::test]
async fn s15_a_server_without_root_hides_its_memory_from_its_agents() {
    // Root may read everything, so this server runs as another user, with copies that everybody may read.
    let folder = tempfile::Builder::new().prefix("tokenrail-").permissions(mode(0o755)).tempdir().unwrap();
    let agent = folder.path().join("fake-agent");
    std::fs::copy(fake_agent(), &agent).unwrap();
    std::fs::copy(crate::harness::program(), folder.path().join("tokenrail")).unwrap();
    let nobody = Nobody::start(folder.path(), &agent);
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let of_server = |file: &str| format!("/proc/{}/{file}", nobody.pid());
    let files = ["environ", "mem", "maps", "auxv", "stack"].map(of_server);
    let own = format!("/proc/{}/cmdline", nobody.pid());
    let peek: Vec<&String> = files.iter().chain([&own]).collect();
    let script = json!({ "mode": "env_dump", "peek": peek });
    let url = |path: &str| format!("http://{}{path}", nobody.authority);
    let launch = http.post(url("/api/agents")).bearer_auth(&nobody.token);
    let launch = launch.json(&json!({ "type": "fake", "prompt": script.to_string() }));
    let agent: Value = launch.send().await.unwrap().json().await.unwrap();
    let id = agent["agentId"].as_str().unwrap();
    let started = tokio::time::Instant::now();
    let text = loop {
        let answer = http.get(url(&format!("/api/agents/{id}/messages"))).bearer_auth(&nobody.token);
        let messages: Vec<Value> = answer.send().await.unwrap().json().await.unwrap();
        if messages.iter().any(|message| message["type"] == "response") {
            break text_of(&messages);
        }
        assert!(started.elapsed() < crate::harness::PATIENCE, "{messages:?}");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    };
    let seen: Value = serde_json::from_str(&text).unwrap();
    assert_ne!(
        seen["peeked"][&own], "permission denied",
        "what everybody may read, to see that this test can fail"
    );
    for file in files {
        assert_eq!(seen["peeked"][&file], "permission denied", "{file}: {seen}");
    }
}

fn mode(mode: u32) -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(mode)
}

/// A server that runs as the user `nobody`.
struct Nobody {
    process: std::process::Child,
    authority: String,
    token: String,
}

impl Nobody {
    fn start(folder: &std::path::Path, agent: &std::path::Path) -> Self {
        use std::io::BufRead as _;
        let config = folder.join("tokenrail.toml");
        std::fs::write(&config, format!("[agents.fake]\nprogram = \"{}\"\npass_env = []\n", agent.display()))
            .unwrap();
        let home = folder.join("home");
        std::fs::create_dir(&home).unwrap();
        std::os::unix::fs::chown(&home, Some(65_534), Some(65_534))
            .expect("only root can become somebody else");
        let mut process = std::process::Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(folder.join("tokenrail"))
            .args(["serve", "--log", "warn", "--listen", "127.0.0.1:0", "--config"])
            .arg(&config)
            .arg("--data-dir")
            .arg(home.join("data"))
            .current_dir(&home)
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        std::io::BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let authority = line.trim().strip_prefix("serving on http://").expect("it serves").to_owned();
        let token = std::fs::read_to_string(home.join("data/token")).unwrap().trim().to_owned();
        Self { process, authority, token }
    }

    fn pid(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Nobody {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
async fn s15_what_a_server_keeps_is_for_its_user_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let server = TestServer::start_with(&fake_config());
    let gate = server.folder.path().join("gate");
    let id = server.launch(&json!({ "deltas": 20, "gate": gate, "gate_after": 5, "complain": "x" })).await;
    server.wait_until(&id, |agent| 5 < agent["head"].as_u64().unwrap()).await;
    let mut folders = vec![server.data_dir()];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        let found = std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777;
        assert_eq!(found, 0o700, "{}", folder.display());
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let Ok(metadata) = std::fs::symlink_metadata(&path) else { continue };
            if metadata.is_dir() {
                folders.push(path);
            } else {
                // The address of the server is not secret, and no other user can enter the folder.
                if path.ends_with("address") {
                    continue;
                }
                let mode = metadata.permissions().mode() & 0o777;
                assert_eq!(mode & 0o077, 0, "{} has mode {mode:o}", path.display());
                seen += 1;
            }
        }
    }
    assert!(9 < seen, "database, log, token, spool …: {seen}");
    std::fs::write(&gate, "").unwrap();
    server.wait_for_status(&id, "completed").await;
}
