//! The SQL, beside the code that uses it.
//!
//! | module | reads and changes |
//! | --- | --- |
//! | [`append`] | one append: the write that every token goes through |
//! | [`journal`] | batches of events |
//! | [`message_row`], [`messages`] | rows of `agent_messages`; pages of messages for `GET …/messages` |
//! | [`commands`] | agents and turns: create, enqueue, cancel, delete, purge |
//! | [`edit`] | names of agents, and their places in lists |
//! | [`agents`], [`turns`], [`turn_ends`] | one or a list of agents and turns; what lists show of a turn's end |
//! | [`prompt_images`] | the images of prompts |
//! | [`latest_result`] | what the latest result of an agent leaves in its row |
//! | [`idempotency`] | idempotency keys |
//! | [`ownership`] | who may append: epochs |
//! | [`list_page`] | one page of a list, in which long fields are cut |
//! | [`archive`], [`compaction`] | imports and rewrites; packing the batches of ended turns tighter |
//! | [`columns`] | columns as domain values |
//!
//! **Open turns.** `state <> 'ended'` is the condition of a partial index. SQLite uses that index only if a statement
//! repeats the condition literally, so statements say `state <> 'ended' AND state = 'queued'`.

pub(crate) mod agents;
pub(crate) mod append;
pub(crate) mod archive;
pub(crate) mod columns;
pub(crate) mod commands;
pub(crate) mod compaction;
pub(crate) mod edit;
pub(crate) mod idempotency;
pub(crate) mod journal;
pub(crate) mod latest_result;
pub(crate) mod list_page;
pub(crate) mod message_row;
pub(crate) mod messages;
pub(crate) mod ownership;
pub(crate) mod prompt_images;
pub(crate) mod turn_ends;
pub(crate) mod turns;
