//! Tests without a network: the programs that they run reach each other, and nothing else.

use std::os::unix::fs::MetadataExt as _;
use std::process::Command;

use crate::process;

/// What a test program can reach.
#[derive(Debug)]
pub(super) enum Network {
    /// A loopback interface of its own, and no other. A command is run with these words before it.
    Loopback(&'static [&'static str]),
    /// Everything that this machine can reach. The text says why the network could not be restricted.
    Machine(String),
}

/// Root can leave the network of the machine directly.
const AS_ROOT: &[&str] = &["unshare", "--net", "sh", "-c", "ip link set lo up && exec \"$@\"", "sh"];

/// Other users become root in a user namespace, which allows them to set up the interface. Then they become themselves
/// again, because some programs behave differently for root.
const AS_ANOTHER: &[&str] = &[
    "sh",
    "-c",
    "uid=$(id -u) gid=$(id -g) exec unshare --map-root-user --net sh -c \
     'ip link set lo up && exec unshare --map-user=\"$uid\" --map-group=\"$gid\" \"$@\"' sh \"$@\"",
    "sh",
];

impl Network {
    /// The most restricted network that this system allows.
    pub(super) fn least() -> Self {
        let root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
        Self::by(if root { AS_ROOT } else { AS_ANOTHER })
    }

    fn by(words: &'static [&'static str]) -> Self {
        let loopback = Self::Loopback(words);
        match loopback.around(&Command::new("true")).output() {
            Ok(found) if found.status.success() => loopback,
            Ok(found) => Self::Machine(String::from_utf8_lossy(&found.stderr).trim().replace('\n', "; ")),
            Err(error) => Self::Machine(format!("cannot start {}: {error}", words[0])),
        }
    }

    /// The command, run in this network.
    pub(super) fn around(&self, command: &Command) -> Command {
        let (program, words) = match self {
            Self::Loopback(words) => (words[0], &words[1..]),
            Self::Machine(_) => ("env", &["--"][..]),
        };
        let mut runner = Command::new(program);
        process::run_by(runner.args(words), command);
        runner
    }

    /// What to print below the table.
    pub(super) fn told(&self) -> String {
        match self {
            Self::Loopback(_) => {
                "Third-party programs ran without a network, except for the loopback.".to_owned()
            }
            Self::Machine(why) => format!("Third-party programs ran WITH A NETWORK ({why})."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(network: &Network, script: &str) -> String {
        let mut command = Command::new("sh");
        command.args(["-c", script]).env("SAID", "it").current_dir("/");
        let output = network.around(&command).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn a_command_is_the_same_in_any_network() {
        for network in [Network::least(), Network::Machine("as the test wants".to_owned())] {
            assert_eq!(said(&network, "pwd; echo $SAID; id -u"), said(&network, "echo /; echo it; id -u"));
        }
    }

    #[test]
    fn without_a_network_there_is_the_loopback_and_nothing_else() {
        let network = Network::least();
        if let Network::Loopback(_) = network {
            // Below two lines of headings.
            let interfaces = said(&network, "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '");
            assert_eq!(interfaces, "lo\n");
            let told = "Third-party programs ran without a network, except for the loopback.";
            assert_eq!(network.told(), told);
        }
    }

    #[test]
    fn where_none_can_be_made_it_says_why() {
        let network = Network::by(&["sh", "-c", "echo not allowed >&2; exit 1", "sh"]);
        assert_eq!(network.told(), "Third-party programs ran WITH A NETWORK (not allowed).");
    }
}
