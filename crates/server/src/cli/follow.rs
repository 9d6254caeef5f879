//! Shows an agent as it works: what `tail` does, and other commands after they have started a turn.

use std::time::Duration;

use futures_util::StreamExt as _;
use reqwest::Response;
use serde_json::Value;
use tokenrail_runner::SseDecoder;
use tokio::time::{Instant, sleep};

use super::answers::{Answers, Known};
use super::client::Client;
use super::event_printer::EventPrinter;
use super::screen::{Screen, Style, counted};
use super::{Exit, Failure};

/// The maximum length of one event of the stream, in bytes.
const EVENT_BYTES: usize = 64 << 20;
/// How many connections in a row may fail without a new event, and the pause between them.
const RECONNECTS: u32 = 60;
const RECONNECT_PAUSE: Duration = Duration::from_millis(500);
const SPIN: Duration = Duration::from_millis(100);

/// Shows an agent after the event `last` until it has ended, and moves `last` on. It reconnects if the connection is
/// lost.
pub(crate) async fn follow(
    client: &Client,
    id: &str,
    last: &mut u64,
    keep: bool,
    screen: &mut Screen,
) -> Result<Exit, Failure> {
    let known = if screen.json { Ok(Known::default()) } else { Known::ask(client, id, *last).await };
    // If it failed, the loop below reports why, or shows the events of an agent that this program cannot read.
    let known = known.unwrap_or_default();
    let (mut printer, mut answers) = (EventPrinter::default(), Answers::new(client, id, known, screen));
    let mut failures = 0;
    loop {
        let before = *last;
        let events = client.events(id, *last, keep).await;
        let shown = match events {
            Ok(events) => stream(events, last, &mut printer, &mut answers, screen).await,
            Err(error) => Err(error),
        };
        match shown {
            Ok(()) if screen.is_lost() => {
                let why = if screen.is_left() { "output closed; " } else { "" };
                let tail = client.command(&format!("tail {id} --since {last}"));
                screen.note(&format!("{why}to continue: {tail}"));
                return Ok(screen.exit_or(Exit::Failed));
            }
            Ok(()) => match ended_as(client, id).await? {
                Some(status) if printer.unread == 0 => return Ok(exit(&status)),
                // Some events were not decoded, but printed as received.
                Some(_) => return Ok(Exit::Failed),
                // The server has stopped in an orderly way, and the agent keeps running.
                None => sleep(RECONNECT_PAUSE).await,
            },
            Err(error) if error.exit != Exit::Unreachable && *last == before && failures == 0 => {
                return Err(error);
            }
            Err(error) => {
                failures = if *last == before { failures + 1 } else { 1 };
                if RECONNECTS < failures {
                    let tail = client.command(&format!("tail {id} --since {last}"));
                    screen.note(&format!("to continue: {tail}"));
                    return Err(error);
                }
                // A status alone would not be seen: the cursor is often in the middle of an answer.
                if failures == 1 && screen.is_live() {
                    let patience = RECONNECT_PAUSE * RECONNECTS;
                    screen.note(&format!(
                        "cannot reach the server; retrying for up to {} s",
                        patience.as_secs()
                    ));
                }
                screen.status("server unreachable; trying again");
                sleep(RECONNECT_PAUSE).await;
            }
        }
    }
}

/// Shows the events of one connection, and takes answers to permission requests meanwhile.
async fn stream(
    events: Response,
    last: &mut u64,
    printer: &mut EventPrinter,
    answers: &mut Answers<'_>,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let started = Instant::now();
    let mut body = events.bytes_stream();
    let mut decoder = SseDecoder::new(EVENT_BYTES);
    let mut events = Vec::new();
    loop {
        let chunk = tokio::select! {
            chunk = body.next() => chunk,
            line = answers.typed(), if answers.can_type() => {
                answers.answer(line, screen).await?;
                continue;
            }
            () = sleep(SPIN), if screen.is_live() => {
                // Only now, because the request may have been answered long ago.
                if !answers.prompt(screen)? {
                    let (events, deltas) = (counted(printer.events, "event"), counted(printer.deltas, "delta"));
                    screen.status(&format!("{events}, {deltas}, {} s", started.elapsed().as_secs()));
                }
                continue;
            }
        };
        let Some(chunk) = chunk else { return Ok(()) };
        let chunk = chunk.map_err(|error| Failure::new(Exit::Unreachable, error))?;
        decoder.feed(&chunk, &mut events)?;
        for event in events.drain(..) {
            let Ok(number) = event.id.as_deref().unwrap_or_default().parse::<u64>() else { continue };
            if number <= *last {
                continue;
            }
            let data = String::from_utf8_lossy(&event.data);
            if screen.json {
                screen.line(Style::Plain, &data);
            } else {
                printer.show_text(number, &data, answers, screen);
            }
            if screen.is_lost() {
                return Ok(());
            }
            *last = number;
        }
    }
}

/// The status of an agent that has ended. `None` if it has not ended, or if no server answers.
async fn ended_as(client: &Client, id: &str) -> Result<Option<String>, Failure> {
    let answer = match client.get(&["api", "agents", id, "status"], &[]).await {
        Ok(answer) => answer.json::<Value>().await?,
        Err(error) if error.exit == Exit::Unreachable => return Ok(None),
        Err(error) => return Err(error),
    };
    let status = answer.get("status").and_then(Value::as_str).unwrap_or_default();
    Ok(if matches!(status, "initializing" | "running") { None } else { Some(status.to_owned()) })
}

fn exit(status: &str) -> Exit {
    match status {
        "completed" => Exit::Completed,
        "cancelled" => Exit::Interrupted,
        _ => Exit::Failed,
    }
}
