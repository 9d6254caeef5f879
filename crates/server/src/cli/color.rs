//! Whether the output has colours: `--color`, and the variables that programs agree on.

use std::ffi::OsString;
use std::io;

use anstream::{AutoStream, ColorChoice};
use clap::ValueEnum;

/// The values of `--color`. `Auto`: on a terminal, unless a variable says otherwise. The variants have no
/// documentation, because help would then take several lines for each option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorWhen {
    Auto,
    Always,
    Never,
}

/// Makes the choice for the whole process. This happens before the command line is parsed, because help and errors in
/// the command line may have colours too.
pub(crate) fn choose(arguments: &[OsString]) {
    match asked(arguments) {
        ColorWhen::Auto => ColorChoice::Auto,
        ColorWhen::Always => ColorChoice::Always,
        ColorWhen::Never => ColorChoice::Never,
    }
    .write_global();
}

/// Whether standard output gets colours.
pub(crate) fn on_stdout() -> bool {
    AutoStream::choice(&io::stdout()) != ColorChoice::Never
}

/// Whether standard error gets colours.
pub(crate) fn on_stderr() -> bool {
    AutoStream::choice(&io::stderr()) != ColorChoice::Never
}

/// The last valid `--color`. The parser reports an invalid one.
fn asked(arguments: &[OsString]) -> ColorWhen {
    let mut words = arguments.iter().map(|word| word.to_str().unwrap_or_default());
    let mut asked = ColorWhen::Auto;
    while let Some(word) = words.next().filter(|word| *word != "--") {
        let value = if word == "--color" { words.next() } else { word.strip_prefix("--color=") };
        if let Some(when) = value.and_then(|value| ColorWhen::from_str(value, false).ok()) {
            asked = when;
        }
    }
    asked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_color_before_the_arguments_counts() {
        let asked = |line: &str| asked(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert_eq!(asked("tokenrail ls"), ColorWhen::Auto);
        assert_eq!(asked("tokenrail --color never ls --color=always"), ColorWhen::Always);
        assert_eq!(asked("tokenrail ls --color sometimes"), ColorWhen::Auto);
        assert_eq!(asked("tokenrail run -- --color=always"), ColorWhen::Auto);
    }
}
