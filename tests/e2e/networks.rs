//! Network namespaces: one for the database, and one for each server. Only `ip` and root can make them.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Names the program.
const VARIABLE: &str = "TOKENRAIL_TEST_IP";

/// The namespaces of tests begin with it. The pid of the test program and a number follow.
const PREFIX: &str = "tokenrail-test-";

/// How many networks this test program has made.
static MADE: AtomicU32 = AtomicU32::new(0);

/// Nobody has it: what is sent there is lost.
const NOBODY: &str = "02:00:00:00:00:01";

/// Addresses in these namespaces.
pub(crate) const ADDRESSES: &str = "10.77.0.0/16";

/// Each way to break a link.
pub(crate) const CUTS: [Cut; 3] = [Cut::ToDatabase, Cut::FromDatabase, Cut::Both];

/// Where a link is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// What the server sends is lost, and nobody is told.
    ToDatabase,
    /// What the database sends is lost, and nobody is told.
    FromDatabase,
    /// The server's end of the link is down.
    Both,
}

/// A namespace for the database, and one for each server with a link to it. They are removed when this is dropped.
pub(crate) struct Networks {
    database: String,
    servers: Vec<String>,
}

impl Networks {
    /// `None` if this account or system cannot make namespaces.
    pub(crate) fn make(servers: usize) -> Option<Self> {
        remove_those_of_the_dead();
        let made = MADE.fetch_add(1, Ordering::Relaxed);
        let name = |what: &str| format!("{PREFIX}{}-{made}-{what}", std::process::id());
        let names = (0..servers).map(|number| name(&number.to_string())).collect();
        let networks = Self { database: name("database"), servers: names };
        if !run(&["netns", "add", &networks.database]) {
            return None;
        }
        in_namespace(&networks.database, &["link", "set", "lo", "up"]);
        for number in 0..servers {
            networks.link(number);
        }
        Some(networks)
    }

    fn link(&self, number: usize) {
        let (server, database) = (self.servers[number].as_str(), self.database.as_str());
        let (here, there) = (format!("server{number}"), "database");
        must(&["netns", "add", server]);
        in_namespace(server, &["link", "set", "lo", "up"]);
        in_namespace(
            database,
            &["link", "add", &here, "type", "veth", "peer", "name", there, "netns", server],
        );
        let ends = [(database, here.as_str(), database_address(number)), (server, there, address(number))];
        for (namespace, link, address) in ends {
            in_namespace(namespace, &["address", "add", &format!("{address}/30"), "dev", link]);
            in_namespace(namespace, &["link", "set", link, "up"]);
        }
    }

    pub(crate) fn database(&self) -> &str {
        &self.database
    }

    /// Starts the program of this command in the namespace of a server.
    pub(crate) fn command_at(&self, number: usize, command: &Command) -> Command {
        let mut inside = ip(&["netns", "exec", &self.servers[number]]);
        inside.arg(command.get_program()).args(command.get_args());
        if let Some(folder) = command.get_current_dir() {
            inside.current_dir(folder);
        }
        inside.stdin(std::process::Stdio::null());
        inside
    }

    /// Lets the test connect to a server: whoever connects to this address outside reaches the same one inside.
    pub(crate) fn open_door(&self, number: usize, address: &str) {
        let listener = TcpListener::bind(address).expect("a free port");
        let (namespace, address) = (format!("/run/netns/{}", self.servers[number]), address.to_owned());
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (namespace, address) = (namespace.clone(), address.clone());
                thread::spawn(move || let_in(client, &namespace, &address));
            }
        });
    }

    pub(crate) fn cut(&self, number: usize, cut: Cut) {
        let (server, database) = (self.servers[number].as_str(), self.database.as_str());
        let lose = |namespace: &str, address: &str, link: &str| {
            in_namespace(
                namespace,
                &["neighbour", "replace", address, "lladdr", NOBODY, "dev", link, "nud", "permanent"],
            );
        };
        match cut {
            Cut::ToDatabase => lose(server, &database_address(number), "database"),
            Cut::FromDatabase => lose(database, &address(number), &format!("server{number}")),
            Cut::Both => in_namespace(server, &["link", "set", "database", "down"]),
        }
    }

    pub(crate) fn mend(&self, number: usize, cut: Cut) {
        let (server, database) = (self.servers[number].as_str(), self.database.as_str());
        let find = |namespace: &str, address: &str, link: &str| {
            in_namespace(namespace, &["neighbour", "delete", address, "dev", link]);
        };
        match cut {
            Cut::ToDatabase => find(server, &database_address(number), "database"),
            Cut::FromDatabase => find(database, &address(number), &format!("server{number}")),
            Cut::Both => in_namespace(server, &["link", "set", "database", "up"]),
        }
    }
}

impl Drop for Networks {
    fn drop(&mut self) {
        for name in self.servers.iter().chain([&self.database]) {
            run(&["netns", "delete", name]);
        }
    }
}

/// The address of the database on the link of this server.
pub(crate) fn database_address(number: usize) -> String {
    format!("10.77.{number}.1")
}

fn address(number: usize) -> String {
    format!("10.77.{number}.2")
}

fn ip(args: &[&str]) -> Command {
    let mut ip = Command::new(std::env::var_os(VARIABLE).unwrap_or_else(|| "ip".into()));
    ip.args(args);
    ip
}

fn run(args: &[&str]) -> bool {
    ip(args).output().is_ok_and(|output| output.status.success())
}

fn must(args: &[&str]) {
    let output = ip(args).output().expect("ip runs");
    assert!(output.status.success(), "ip {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn in_namespace(name: &str, args: &[&str]) {
    must(&[&["-n", name], args].concat());
}

/// Removes the namespaces of tests that were killed.
fn remove_those_of_the_dead() {
    let names = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    for name in names.filter_map(|entry| entry.file_name().into_string().ok()) {
        let pid = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        if pid.is_some_and(|pid| !std::path::Path::new("/proc").join(pid).exists()) {
            run(&["netns", "delete", &name]);
        }
    }
}

/// Passes a connection on. A socket belongs to the namespace of the thread that makes it.
fn let_in(client: TcpStream, namespace: &str, address: &str) {
    let Ok(namespace) = std::fs::File::open(namespace) else { return };
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).expect("root may do this");
    let Ok(server) = TcpStream::connect(address) else { return };
    let clone = |stream: &TcpStream| stream.try_clone().expect("a socket");
    let (from_server, to_client) = (clone(&server), clone(&client));
    thread::spawn(move || pass(from_server, to_client));
    pass(client, server);
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    let mut bytes = [0; 8192];
    while let Ok(read @ 1..) = from.read(&mut bytes) {
        if to.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
