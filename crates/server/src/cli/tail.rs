//! `tokenrail tail`: follows an agent.

use clap::Args;

use super::agent_id::AgentArg;
use super::attend::{Attended, Host, OnStop, attend};
use super::client::Client;
use super::screen::Screen;
use super::serve::StopSignal;
use super::{Exit, Failure};
use crate::config::Config;

#[derive(Debug, Args)]
pub(crate) struct TailArgs {
    #[command(flatten)]
    agent: AgentArg,
    /// Start after this sequence number; 0 starts at the beginning
    #[arg(long, default_value_t = 0, value_name = "N")]
    since: u64,
    /// Keep following when no turn is running or queued, to show later turns
    #[arg(long)]
    keep: bool,
}

pub(crate) async fn tail(config: &Config, args: TailArgs, screen: &mut Screen) -> Result<Exit, Failure> {
    let client = Client::reach(config).await?;
    let id = args.agent.find(&client).await?;
    let mut stop = StopSignal::listen()?;
    let (since, keep, host, on_stop) = (args.since, args.keep, Host::Server, OnStop::Leave);
    let attended = Attended { client: &client, id: &id, since, keep, sent: None, host, on_stop };
    Ok(attend(attended, &mut stop, screen).await?.exit())
}
