//! Follows an agent until its turn ends, or until the user leaves it.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use super::client::Client;
use super::follow::follow;
use super::screen::Screen;
use super::serve::{Stop, StopSignal};
use super::{Exit, Failure};

/// A second Ctrl-C within this time cancels the agent.
const SECOND_CTRL_C: Duration = Duration::from_secs(2);

/// How long the server may take to say whether a message is still queued.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(1);

/// An agent to follow, and how.
pub(crate) struct Attended<'a> {
    pub(crate) client: &'a Client,
    pub(crate) id: &'a str,
    pub(crate) since: u64,
    pub(crate) keep: bool,
    /// The turn of the message that the command has sent.
    pub(crate) sent: Option<u64>,
    pub(crate) host: Host,
    pub(crate) on_stop: OnStop,
}

/// Who has the agent when the command has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Host {
    /// A server that goes on.
    Server,
    /// Nobody, until the next server adopts the agent: the server of this command ends with it.
    OwnServer,
    /// Nobody. The server of this command ends with it, and the agent exists only in a connection of that server.
    OwnConnection,
}

/// What a stop signal does to the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnStop {
    Cancel,
    Leave,
    /// The first Ctrl-C leaves it, and a second one cancels it.
    LeaveOrCancel,
}

/// Why following has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The agent's turn has ended, or the output is closed.
    Done(Exit),
    /// The user has left, and the agent was not cancelled.
    Left,
    Cancelled,
}

impl End {
    pub(crate) fn exit(self) -> Exit {
        match self {
            Self::Done(exit) => exit,
            Self::Left | Self::Cancelled => Exit::Interrupted,
        }
    }
}

/// Shows the agent until its turn ends or a stop signal arrives.
///
/// # Errors
/// As [`follow`].
pub(crate) async fn attend(
    attended: Attended<'_>,
    stop: &mut StopSignal,
    screen: &mut Screen,
) -> Result<End, Failure> {
    let Attended { client, id, since, keep, sent: _, host: _, on_stop } = attended;
    let mut last = since;
    let signal = tokio::select! {
        done = follow(client, id, &mut last, keep, screen) => return Ok(End::Done(done?)),
        signal = stop.recv() => signal,
    };
    if on_stop != OnStop::Cancel {
        let waits = on_stop == OnStop::LeaveOrCancel && signal == Stop::Interrupt;
        attended.say_what_remains(last, waits, screen).await;
        if !waits || timeout(SECOND_CTRL_C, stop.recv()).await != Ok(Stop::Interrupt) {
            return Ok(End::Left);
        }
    }
    client.post(&["api", "agents", id, "cancel"], &json!({})).await?;
    screen.note("cancelled");
    Ok(End::Cancelled)
}

impl Attended<'_> {
    /// Says on standard error what happens to the agent, and how to follow and cancel it.
    async fn say_what_remains(&self, last: u64, waits: bool, screen: &mut Screen) {
        let Self { client, id, since: _, keep: _, sent: _, host, on_stop: _ } = self;
        let tail = client.command(&format!("tail {id} --since {last}"));
        let cancel = client.command(&format!("cancel {id}"));
        match host {
            Host::Server => match self.queued().await {
                Some(turn) => screen.note(&format!(
                    "the message stays queued as turn {turn}, and the agent keeps running; to follow the agent \
                     again: {tail}"
                )),
                None => screen.note(&format!("the agent keeps running; to follow it again: {tail}")),
            },
            Host::OwnServer => screen.note(&format!(
                "stopping the server that this command started; the agent keeps running, and when a server runs again, \
                 that server saves what the agent has printed\nto start a server: {}\nto follow the agent again: {tail}",
                client.command("serve")
            )),
            Host::OwnConnection => screen.note(
                "stopping the server that this command started, which closes its connection to the agent; the \
                 next server will mark the agent's turn as interrupted",
            ),
        }
        let again = format!("press Ctrl-C again within {} s, or: ", SECOND_CTRL_C.as_secs());
        let again = if waits { again.as_str() } else { "" };
        screen.note(&format!("to cancel the agent's running turn and all queued turns: {again}{cancel}"));
    }

    /// The turn of the message that was sent, if an earlier turn has not ended yet. `None` also if the server does not
    /// say so in time.
    async fn queued(&self) -> Option<u64> {
        let sent = self.sent?;
        let agent = async {
            self.client.get(&["api", "agents", self.id], &[]).await.ok()?.json::<Value>().await.ok()
        };
        let agent = timeout(QUEUE_TIMEOUT, agent).await.ok()??;
        (agent.get("turn")?.as_u64()? < sent).then_some(sent)
    }
}
