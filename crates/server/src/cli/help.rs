//! The help of each command shows only the global options that have an effect on it. All commands accept all of them,
//! so that a script may pass the same options to each command.

use clap::Command;

const LISTEN: &str = "Address to listen on [default: `server.listen`, else 127.0.0.1:7117]";
const CONNECT: &str = "Address of the server to connect to [default: the server that uses the data folder]";
const SHOWN: &str = "Has an effect only in `config show`, which prints it as `server.listen`";
const ACCEPT_ALL: &str =
    "Accept requests without a token. Only allowed if the server listens on a loopback address";
const SEND_NONE: &str = "Send no token";

/// The program, with the help of its commands.
pub(super) fn fitted(program: Command) -> Command {
    let global: Vec<_> = program.get_arguments().filter(|option| option.is_global_set()).cloned().collect();
    program.mut_subcommands(|command| {
        let (name, mut command) = (command.get_name().to_owned(), command);
        for option in &global {
            // The parser keeps an option of this id that the command already has, instead of adding the global one.
            let id = option.get_id().as_str();
            if hidden(&name).contains(&id) {
                command = command.arg(option.clone().hide(true));
            } else if let Some(help) = help_of(&name, id) {
                command = command.arg(option.clone().help(help));
            }
        }
        command
    })
}

/// The ids of the options that a command ignores or refuses.
fn hidden(command: &str) -> &'static [&'static str] {
    match command {
        "serve" => &["url"],
        "config" => &["url", "insecure_no_auth"],
        "allow" | "backup" | "move" | "reparse" | "token" => &["url", "listen", "insecure_no_auth"],
        "completions" | "man" => &["config", "data_dir", "url", "listen", "insecure_no_auth"],
        _ => &[],
    }
}

/// What an option means to a command, if it has another meaning for some of the others.
fn help_of(command: &str, option: &str) -> Option<&'static str> {
    match (command, option) {
        ("up" | "serve" | "demo", "listen") => Some(LISTEN),
        ("up" | "serve" | "demo", "insecure_no_auth") => Some(ACCEPT_ALL),
        ("config", "listen") => Some(SHOWN),
        (_, "listen") => Some(CONNECT),
        (_, "insecure_no_auth") => Some(SEND_NONE),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::super::Cli;
    use super::fitted;

    fn help(command: &str) -> String {
        let shown = fitted(Cli::command()).try_get_matches_from(["tokenrail", command, "--help"]);
        shown.unwrap_err().to_string()
    }

    #[test]
    fn the_help_leaves_out_options_without_effect() {
        for command in ["allow", "backup", "move", "reparse", "token", "completions", "man"] {
            assert!(!help(command).contains("--url"), "{command}");
            assert!(!help(command).contains("--listen"), "{command}");
            assert!(help(command).contains("--color"), "{command}");
        }
        assert!(help("ls").contains("--url"));
        assert!(help("ls").contains("Address of the server to connect to"));
        assert!(help("doctor").contains("Address of the server to connect to"));
        assert!(help("serve").contains("Address to listen on"));
        assert!(
            help("config").contains("Has an effect only in `config show`")
                && !help("config").contains("--url")
        );
    }

    #[test]
    fn a_command_accepts_options_without_effect_before_and_after_its_name() {
        for words in [["--listen", "127.0.0.1:1", "token"], ["token", "--listen", "127.0.0.1:1"]] {
            let matches =
                fitted(Cli::command()).try_get_matches_from(["tokenrail"].iter().chain(&words)).unwrap();
            assert_eq!(matches.get_one::<String>("listen").unwrap(), "127.0.0.1:1");
        }
    }
}
