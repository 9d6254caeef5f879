//! WebSocket conformance: Kosoku plays the cases 1 to 7 and 10 of Autobahn against `/ws/echo`, which reads and writes
//! as `/ws` does. Its path is in `TOKENRAIL_TEST_KOSOKU`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::harness::fake_config;
use crate::started::Started;

/// Cases 9 test speed. Cases 12 and 13 test compression, which the server declines.
const CASES: [&str; 8] = ["1.*", "2.*", "3.*", "4.*", "5.*", "6.*", "7.*", "10.*"];
const COUNT: usize = 247;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Verdict {
    behavior: String,
    behavior_close: String,
}

impl Verdict {
    /// Whether the case passed. An informational case has no right or wrong result. A non-strict result is correct, but
    /// the server could have reported the error earlier.
    fn is_good(&self) -> bool {
        let good = ["OK", "NON-STRICT", "INFORMATIONAL"];
        good.contains(&&*self.behavior) && good.contains(&&*self.behavior_close)
    }
}

#[tokio::test]
async fn websocket_conformance_has_no_failure() {
    let program = std::env::var_os("TOKENRAIL_TEST_KOSOKU").expect("cargo xtask test sets it");
    let started = Started::start(&fake_config(), &[], &["--insecure-no-auth", "--test-routes"]);
    let folder = started.server.folder.path().join("reports");
    let mut command = Command::new(program);
    for cases in CASES {
        command.args(["--include", cases]);
    }
    command.arg("--outdir").arg(&folder).arg(format!("{}/ws/echo", started.server.authority()));
    command.stdin(Stdio::null()).current_dir(started.server.folder.path());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let verdicts = verdicts(&folder.join("index.json"));
    assert_eq!(verdicts.len(), COUNT, "{}", String::from_utf8_lossy(&output.stderr));
    let bad: Vec<_> = verdicts.iter().filter(|(_, verdict)| !verdict.is_good()).collect();
    assert!(bad.is_empty(), "{bad:#?}");
    started.stop();
}

fn verdicts(report: &Path) -> BTreeMap<String, Verdict> {
    let text = std::fs::read(report).expect("a report");
    let mut agents: BTreeMap<String, BTreeMap<String, Verdict>> = serde_json::from_slice(&text).unwrap();
    let (_, verdicts) = agents.pop_first().expect("the server");
    verdicts
}
