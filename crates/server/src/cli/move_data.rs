//! `tokenrail move`: the data of a data folder into a database of PostgreSQL.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;
use tokenrail_persistence::{MoveCounts, MoveProgress, MoveStep, move_to_postgres};

use super::screen::{Screen, Style, counted};
use super::{Exit, Failure};
use crate::config::{Config, PostgresBlock, StorageConfig};
use crate::store::postgres_config;

/// Between two lines of progress, if they are not on a terminal.
const LINE_PAUSE: Duration = Duration::from_secs(10);

/// Between two changes of the status on a terminal.
const STATUS_PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug, Args)]
pub(crate) struct MoveArgs {
    /// The database, which must be empty: `postgres://USER@HOST/DATABASE`, as in `storage.url`, without a password
    #[arg(long, value_name = "URL")]
    to: String,
    /// File with the password of the database [default: `storage.password_file`, else the environment variable
    /// PGPASSWORD]
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

pub(crate) async fn move_data(config: &Config, args: MoveArgs, screen: &mut Screen) -> Result<Exit, Failure> {
    let block = PostgresBlock::given(&args.to, args.password_file.as_deref(), &config.storage)
        .map_err(|why| Failure::new(Exit::Usage, format!("--to: {why}")))?;
    let to = postgres_config(&block, &config.limits)?;
    let mut shown = ShownProgress::new(screen);
    let moved = move_to_postgres(&config.data_dir, to, &mut |progress| shown.tell(progress)).await;
    screen.clear_status();
    match moved {
        Ok(counts) => {
            show(&counts, config, &args, screen);
            Ok(Exit::Completed)
        }
        Err(error) if error.is_corrupt() => {
            screen.error(Exit::Corrupt.code(), &error);
            Ok(Exit::Corrupt)
        }
        Err(error) => Err(error.into()),
    }
}

/// What a user sees while it goes on: a status on a terminal, else now and then a line.
struct ShownProgress<'a> {
    screen: &'a mut Screen,
    step: Option<MoveStep>,
    shown_at: Instant,
}

impl<'a> ShownProgress<'a> {
    fn new(screen: &'a mut Screen) -> Self {
        Self { screen, step: None, shown_at: Instant::now() }
    }

    fn tell(&mut self, progress: MoveProgress) {
        let pause = if self.screen.is_live() { STATUS_PAUSE } else { LINE_PAUSE };
        let is_new = self.step.replace(progress.step) != Some(progress.step);
        if !is_new && self.shown_at.elapsed() < pause {
            return;
        }
        self.shown_at = Instant::now();
        let text = progress_text(progress);
        if self.screen.is_live() {
            self.screen.status(&text);
        } else {
            self.screen.note(&text);
        }
    }
}

fn progress_text(MoveProgress { step, done, total }: MoveProgress) -> String {
    let step = match step {
        MoveStep::Copying => "copying",
        MoveStep::CopyingAgain => "copying again from the beginning, because an earlier move was interrupted",
        MoveStep::Comparing => "comparing",
    };
    let percent = (100 * done).checked_div(total).unwrap_or(100);
    format!("{step} ... {percent}%")
}

fn show(counts: &MoveCounts, config: &Config, args: &MoveArgs, screen: &mut Screen) {
    if screen.json {
        let MoveCounts { agents, open_agents, turns, events, images, keys, purged } = counts;
        let line = json!({
            "folder": config.data_dir.display().to_string(), "database": args.to, "agents": agents,
            "openAgents": open_agents, "turns": turns, "events": events, "images": images,
            "idempotencyKeys": keys, "purged": purged,
        });
        screen.line(Style::Plain, &line.to_string());
        return;
    }
    screen.line(Style::Plain, &moved_text(counts));
    for line in next_steps(config, args) {
        screen.line(Style::Plain, &line);
    }
}

fn moved_text(counts: &MoveCounts) -> String {
    let MoveCounts { agents, open_agents, turns, events, images, keys, purged } = *counts;
    let open = match open_agents {
        0 => String::new(),
        open => format!(" ({open} with an open turn)"),
    };
    let parts = [
        counted(turns, "turn"),
        counted(events, "event"),
        counted(images, "image"),
        counted(keys, "idempotency key"),
        counted(purged, "id") + " of purged agents",
    ];
    format!("moved and verified: {}{open}, {}", counted(agents, "agent"), parts.join(", "))
}

/// What the user does next.
fn next_steps(config: &Config, args: &MoveArgs) -> Vec<String> {
    let MoveArgs { to, password_file } = args;
    let is_set = matches!(&config.storage, StorageConfig::Postgres(block) if block.url == *to);
    let mut lines = Vec::new();
    if is_set {
        lines.push("Start the server. storage.url is already set.".to_owned());
    } else {
        lines.push("Write this into the configuration, then start the server:".to_owned());
        lines.extend(["[storage]".to_owned(), format!("url = {}", quoted(to))]);
        lines.extend(password_file.as_ref().map(|file| {
            let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
            format!("password_file = {}", quoted(&file.display().to_string()))
        }));
    }
    lines.push(format!(
        "Keep the folder {}: the server still uses it, and running agents continue there. The old database in it \
         (tokenrail.db) is unchanged, and no longer used.",
        config.data_dir.display()
    ));
    lines
}

/// A text as TOML reads it.
fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_shown_in_percent() {
        let at = |done, total| progress_text(MoveProgress { step: MoveStep::Copying, done, total });
        assert_eq!(
            (at(0, 0), at(1, 3), at(4, 4)),
            ("copying ... 100%".to_owned(), "copying ... 33%".to_owned(), "copying ... 100%".to_owned())
        );
    }

    #[test]
    fn the_result_says_how_much_has_moved() {
        let counts = MoveCounts { agents: 2, turns: 1, events: 3, ..MoveCounts::default() };
        assert_eq!(
            moved_text(&counts),
            "moved and verified: 2 agents, 1 turn, 3 events, 0 images, 0 idempotency keys, 0 ids of purged agents"
        );
        let counts = MoveCounts { open_agents: 1, ..counts };
        assert!(moved_text(&counts).contains("2 agents (1 with an open turn), 1 turn"));
    }
}
