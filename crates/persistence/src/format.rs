//! The storage format: how events become bytes and rows, and back. Pure: no database, no I/O, no clock.
//!
//! Every store writes the same format, so nothing here names a database (`cargo xtask layers` checks it).
//!
//! | module | what it defines |
//! | --- | --- |
//! | [`packing`] | the payload of a batch: its events in columns, plain or compressed |
//! | [`batch`] | a row of `journal`: a payload, the range that it covers, and its checksum |
//! | [`rows`] | a row of `agent_messages`: one event that is not a delta, readable by people and tools |
//! | [`checksum`] | the checksum that both kinds of rows carry |
//! | [`iso`] | times as text |

pub(crate) mod batch;
pub(crate) mod checksum;
pub(crate) mod iso;
pub(crate) mod packing;
pub(crate) mod rows;
