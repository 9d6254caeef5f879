//! `tokenrail completions`: scripts that let a shell complete commands and options.

use clap::Args;
use clap_complete::Shell;

use super::screen::{Screen, Style};
use super::{Exit, Failure};

/// The name of the program.
const NAME: &str = "tokenrail";

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub(crate) fn completions(
    args: &CompletionsArgs,
    command: &clap::Command,
    screen: &mut Screen,
) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut visible(command), NAME, &mut script);
    screen.text(Style::Plain, &String::from_utf8(script)?);
    Ok(Exit::Completed)
}

/// The program without its internal commands, which the generator would offer too.
fn visible(command: &clap::Command) -> clap::Command {
    let commands = command.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let options = command.get_arguments().cloned();
    let about = command.get_about().cloned().unwrap_or_default();
    let shown = clap::Command::new(NAME).about(about).version(env!("CARGO_PKG_VERSION"));
    shown.propagate_version(true).args(options).subcommands(commands)
}
