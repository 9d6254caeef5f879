//! The storage format: how events become bytes and rows, and back. Pure: no database, no I/O, no clock.
//!
//! Every store writes the same format, so nothing here names a database (`cargo xtask layers` checks it).
//!
//! | module | what it defines |
//! | --- | --- |
//! | [`packing`] | the payload of a batch: its events in columns, plain or compressed |
//! | [`batch`], [`batch_run`] | a row of `journal`: a payload, the range that it covers, and its checksum; several in order |
//! | [`packed_blocks`] | the blocks into which the batches of an ended turn are packed |
//! | [`rows`] | a row of `agent_messages`: one event that is not a delta, readable by people and tools |
//! | [`message_page`] | a page of messages: rows, and the deltas of open messages |
//! | [`images`] | images of prompts, and their list in the row of a turn |
//! | [`latest_result`] | what the latest result of an agent leaves in its row |
//! | [`letters`] | what nodes ask of each other, and the replies |
//! | [`checksum`] | the checksum that rows carry |
//! | [`iso`] | times as text |

pub(crate) mod batch;
pub(crate) mod batch_run;
pub(crate) mod checksum;
pub(crate) mod images;
pub(crate) mod iso;
pub(crate) mod latest_result;
pub(crate) mod letters;
pub(crate) mod message_page;
pub(crate) mod packed_blocks;
pub(crate) mod packing;
pub(crate) mod rows;
