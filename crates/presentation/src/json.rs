//! JSON as all vocabularies read and write it: ids, times, foreign values, the fields of a request, and the few
//! objects that they share.

mod agent;
pub(crate) mod fields;
mod list;
pub(crate) mod readable;
mod text;
mod usage;

pub(crate) use agent::{AgentErrorDto, AgentRefDto};
pub(crate) use list::{ItemList, JsonList, ListFold};
pub(crate) use text::{IdText, IsoTime, Json, plain_text};
pub(crate) use usage::TokenUsage;
