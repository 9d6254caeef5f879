//! The account that the server runs under: `postgres` refuses to run as root.

use std::path::Path;
use std::process::Command;

use crate::programs;

/// Accounts that root can use: the one of Debian's package, or one that every system has.
const UNPRIVILEGED: [&str; 2] = ["postgres", "nobody"];

/// A user and its group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Account {
    user: u32,
    group: u32,
}

/// The account to use. `None` if we are not root: then it is our own.
pub(crate) fn account() -> Option<Account> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let known = std::fs::read_to_string("/etc/passwd").expect("the accounts of this system");
    let found = UNPRIVILEGED.iter().find_map(|name| known.lines().find_map(|line| parse(line, name)));
    Some(found.expect("an account other than root"))
}

/// Reads a line of `/etc/passwd`. `None` if it is about another account.
fn parse(line: &str, name: &str) -> Option<Account> {
    let mut fields = line.split(':');
    let is_it = fields.next()? == name;
    let (user, group) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
    is_it.then_some(Account { user, group })
}

/// A command that runs one of the programs, or the program of a whole path, under this account. It becomes that
/// program, so the child has its pid. When this test program ends, it gets SIGQUIT.
pub fn command(name: &str) -> Command {
    command_behind(&[], name)
}

/// The same, started by a program that becomes the next one, such as `ip netns exec NAME`.
pub(crate) fn command_behind(before: &[String], name: &str) -> Command {
    let mut words = before.iter().map(String::as_str).chain(["setpriv"]);
    let mut command = programs::clean(Command::new(words.next().unwrap_or("setpriv")));
    command.args(words);
    if let Some(Account { user, group }) = account() {
        command.arg(format!("--reuid={user}")).arg(format!("--regid={group}")).arg("--clear-groups");
    }
    command.args(["--pdeathsig", "QUIT"]).arg(programs::folder().join(name));
    // It must not keep the folder of the tests, which the account may not even enter.
    command.current_dir("/");
    command
}

/// Lets the account use this folder.
pub(crate) fn give(folder: &Path) {
    if let Some(Account { user, group }) = account() {
        std::os::unix::fs::chown(folder, Some(user), Some(group)).expect("root may do this");
    }
}

/// Lets the account use everything in this folder.
pub fn give_all(folder: &Path) {
    if let Some(Account { user, group }) = account() {
        programs::succeed(Command::new("chown").arg("-R").arg(format!("{user}:{group}")).arg(folder));
    }
}
