//! How vocabularies show a turn: parts that several of them use.
//!
//! | module | what it is for |
//! | --- | --- |
//! | `turn_events` | reads the events of one turn |
//! | `call_digest` | the ids of tool calls, of any length |
//! | `call_state` | how far a tool call has come |
//! | `said_words` | what was sent of an incomplete message |
//! | `permission_notices` | permission requests, as the notices in a journal contain them |
//! | `block_stream` | event streams that answer a request |

pub(crate) mod block_stream;
pub(crate) mod call_digest;
pub(crate) mod call_state;
pub(crate) mod permission_notices;
pub(crate) mod said_words;
pub(crate) mod turn_events;
