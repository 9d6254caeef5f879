//! Tokenrail's own vocabulary: the dialects of its WebSocket, and events over HTTP.
//!
//! | module | what it is for |
//! | --- | --- |
//! | [`endpoints`] | the API on one screen: path, method, handler, problems |
//! | [`rest`], [`sse`], [`ws`] | its handlers: REST, event stream, WebSocket |
//! | [`mod@socket_io`] | the same events for clients of Socket.IO |
//! | [`dialect`], [`detail`] | what a client chooses: the set of frames; how much of each event, in how many frames |
//! | [`dialects`] | the three dialects of the WebSocket, one fold each, and all of them as one fold |
//! | [`native_frame`] | the frames of the dialects |
//! | [`events`] | events over HTTP: fold and frames |
//! | [`transport`] | writes frames as bytes |
//! | [`joined`], [`packed`] | consecutive text in one frame; consecutive deltas in one frame |
//! | [`writing`] | the bytes of a page, written once for all followers that want the same form |
//! | [`teller`] | the frames of one subscription |
//! | [`turn_record`], [`lineage`] | a turn as one document; the parent of each of its messages |
//! | [`export`], [`mod@import`] | an agent as one file |
//! | [`dto`] | the JSON names |

mod detail;
mod dialect;
mod dialects;
pub(crate) mod dto;
pub(crate) mod endpoints;
mod events;
mod export;
mod import;
mod joined;
mod lineage;
mod native_frame;
mod packed;
pub(crate) mod rest;
pub(crate) mod socket_io;
mod sse;
mod teller;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod transport;
mod turn_record;
mod writing;
pub(crate) mod ws;

pub(crate) use detail::Detail;
pub(crate) use dialect::Dialect;
pub(crate) use dialects::DialectFold;
pub use dto::event_json;
pub(crate) use events::EventFold;
pub(crate) use native_frame::{Piece, TextPiece};
pub(crate) use teller::{PageFrames, Teller, TextMode};
pub(crate) use writing::{EventWriting, items_of_events, items_of_page};

#[cfg(test)]
mod tests;
