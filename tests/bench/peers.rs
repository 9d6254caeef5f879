//! The servers that this one is compared with. `cargo xtask bench --peers` installs what they need, and passes its
//! location in two variables.

use std::path::PathBuf;
use std::process::Command;

use crate::Failure;
use crate::cores::Cores;
use crate::server::{self, Server, Setup};

/// The folder with the Node server and its packages.
const NODE_FOLDER: &str = "TOKENRAIL_BENCH_NODE";
/// The program `nats-server`.
const NATS: &str = "TOKENRAIL_BENCH_NATS";

/// The servers to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Tokenrail,
    /// A Node server that inserts each token alone.
    NodeEach,
    /// A Node server that inserts what one read returned in one transaction.
    NodeRead,
    /// A broker. It starts no agents, so the load generator publishes what they would print.
    Nats,
}

impl Who {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Tokenrail => "Tokenrail",
            Self::NodeEach => "Node",
            Self::NodeRead => "Node, batches",
            Self::Nats => "NATS JetStream",
        }
    }

    /// The servers that can be measured here.
    pub(crate) fn all(peers: bool) -> Vec<Self> {
        let mut all = vec![Self::Tokenrail];
        if peers {
            all.extend([Self::NodeEach, Self::NodeRead].into_iter().filter(|_| given(NODE_FOLDER).is_some()));
            all.extend(given(NATS).map(|_| Self::Nats));
        }
        all
    }

    /// Prints which servers cannot be measured here, and what must be installed for them.
    pub(crate) fn tell_missing(peers: bool) {
        if peers {
            for text in Self::missing() {
                println!("({text})");
            }
        }
    }

    fn missing() -> Vec<&'static str> {
        let node = "Node is not measured: it needs node, npm, a C++ compiler, make and python3 \
                    (apt-get install nodejs npm g++ make python3), and cargo xtask bench --peers";
        let nats = "NATS JetStream is not measured: it needs nats-server (apt-get install nats-server), and cargo \
                    xtask bench --peers";
        [(NODE_FOLDER, node), (NATS, nats)]
            .into_iter()
            .filter_map(|(name, text)| given(name).is_none().then_some(text))
            .collect()
    }

    /// Starts a server that launches agents.
    pub(crate) fn start(self, setup: &Setup<'_>) -> Result<Server, Failure> {
        let way = match self {
            Self::NodeEach => "each",
            Self::NodeRead => "read",
            Self::Tokenrail | Self::Nats => return Server::set_up(setup),
        };
        let folder = setup.folder()?;
        let script = given(NODE_FOLDER).ok_or("there is no Node")?.join("server.mjs");
        let mut command = Cores::command(setup.cores, "node".as_ref());
        command.arg(script).arg(folder.path().join("node.db")).arg(server::agent_program()?).arg(way);
        Server::run(folder, command)
    }
}

/// The command that starts `nats-server`.
pub(crate) fn nats_command(cores: Option<&Cores>) -> Result<Command, Failure> {
    Ok(Cores::command(cores, &given(NATS).ok_or("there is no nats-server")?))
}

fn given(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from)
}
