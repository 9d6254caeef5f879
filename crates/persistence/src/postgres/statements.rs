//! The SQL, beside the code that uses it.
//!
//! | module | reads and changes |
//! | --- | --- |
//! | [`heads`] | where each journal stands; the lock of all that changes one agent |
//! | [`append`] | appends: those of many agents in one statement, or one alone |
//! | [`journal`] | batches of events |
//! | [`message_row`], [`messages`] | rows of `agent_messages`; pages of messages for `GET …/messages` |
//! | [`commands`] | agents and turns: create, enqueue, cancel, delete, purge |
//! | [`edit`] | names of agents, and their places in lists |
//! | [`agents`], [`turns`], [`turn_ends`] | one or a list of agents and turns; what lists show of a turn's end |
//! | [`prompt_images`] | the images of prompts |
//! | [`latest_result`] | what the latest result of an agent leaves in its row |
//! | [`keys`] | idempotency keys |
//! | [`ownership`] | who may append: owners and epochs |
//! | [`list_page`] | one page of a list, in which long fields are cut |
//! | [`archive`], [`compaction`] | imports and rewrites; packing the batches of ended turns tighter |
//! | [`columns`] | columns as domain values |
//!
//! **Open turns.** `state <> 'ended'` is the condition of a partial index. PostgreSQL uses that index only if it can
//! see that a statement implies it, so statements say `state <> 'ended' AND state = 'queued'`.

pub(crate) mod agents;
pub(crate) mod append;
pub(crate) mod archive;
pub(crate) mod columns;
pub(crate) mod commands;
pub(crate) mod compaction;
pub(crate) mod edit;
pub(crate) mod heads;
pub(crate) mod journal;
pub(crate) mod keys;
pub(crate) mod latest_result;
pub(crate) mod list_page;
pub(crate) mod message_row;
pub(crate) mod messages;
pub(crate) mod ownership;
pub(crate) mod prompt_images;
pub(crate) mod turn_ends;
pub(crate) mod turns;
