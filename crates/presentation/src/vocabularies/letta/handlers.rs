//! The REST API that Letta's clients and its command-line tool use, and the streams of its messages. An agent, its
//! conversation and its runs are views of one agent and its turns, so nothing about them is stored.

pub(crate) mod agents;
mod approval;
mod body;
mod cancel;
pub(crate) mod conversations;
pub(crate) mod history;
mod ids;
mod journal;
mod message_page;
pub(crate) mod messages;
mod range;
mod refusal;
mod retry;
mod run;
mod run_list;
pub(crate) mod runs;
mod stream;
mod whole;

pub(crate) use agents::{
    NO_LISTS, agent, agents, create, delete_agent, health, models, no_list, update_agent,
};
pub(crate) use conversations::{
    begin, cancel_conversation, conversation, conversations, converse, converse_again, delete_conversation,
    update_conversation,
};
pub(crate) use history::{conversation_history, history, run_history};
pub(crate) use messages::{cancel, say, say_in_background, say_streaming};
pub(crate) use refusal::refused;
pub(crate) use runs::{cancel_run, run, run_stream, run_usage, runs};
