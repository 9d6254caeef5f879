//! Letters between nodes, and the replies to them, as JSON.

use serde::{Deserialize, Serialize};
use tokenrail_domain::{PermissionReply, ReplyFault};
use tokenrail_ports::{LetterContent, LetterReply, PermissionAnswer, StoreError};

/// A [`LetterContent`].
#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
enum ContentJson {
    Answer {
        request_id: String,
        options: Vec<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    Dismiss,
}

/// A [`LetterReply`].
#[derive(Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "camelCase")]
enum ReplyJson {
    Settled,
    HandedOn,
    NotDelivered,
    AlreadySettled,
    Unknown,
    NoSuchOption { known: String },
    NotAccepted { fault: FaultJson },
}

/// A [`ReplyFault`].
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum FaultJson {
    UnknownOption,
    NotSeveral,
    Unmixable,
    NoText,
    NoNote,
    NoteWithoutRejection,
}

pub(crate) fn content_to_bytes(content: &LetterContent) -> Result<Vec<u8>, StoreError> {
    to_bytes(&match content.clone() {
        LetterContent::Answer(PermissionAnswer { request_id, reply }) => {
            let PermissionReply { options, text, note } = reply;
            ContentJson::Answer { request_id, options, text, note }
        }
        LetterContent::Dismiss => ContentJson::Dismiss,
    })
}

/// # Errors
/// [`StoreError::Corrupt`], also if a newer version has written it.
pub(crate) fn content_of_bytes(bytes: &[u8]) -> Result<LetterContent, StoreError> {
    Ok(match of_bytes(bytes)? {
        ContentJson::Answer { request_id, options, text, note } => {
            let reply = PermissionReply { options, text, note };
            LetterContent::Answer(PermissionAnswer { request_id, reply })
        }
        ContentJson::Dismiss => LetterContent::Dismiss,
    })
}

pub(crate) fn reply_to_bytes(reply: LetterReply) -> Result<Vec<u8>, StoreError> {
    to_bytes(&match reply {
        LetterReply::Settled => ReplyJson::Settled,
        LetterReply::HandedOn => ReplyJson::HandedOn,
        LetterReply::NotDelivered => ReplyJson::NotDelivered,
        LetterReply::AlreadySettled => ReplyJson::AlreadySettled,
        LetterReply::Unknown => ReplyJson::Unknown,
        LetterReply::NoSuchOption { known } => ReplyJson::NoSuchOption { known },
        LetterReply::NotAccepted(fault) => ReplyJson::NotAccepted {
            fault: match fault {
                ReplyFault::UnknownOption => FaultJson::UnknownOption,
                ReplyFault::NotSeveral => FaultJson::NotSeveral,
                ReplyFault::Unmixable => FaultJson::Unmixable,
                ReplyFault::NoText => FaultJson::NoText,
                ReplyFault::NoNote => FaultJson::NoNote,
                ReplyFault::NoteWithoutRejection => FaultJson::NoteWithoutRejection,
            },
        },
    })
}

/// # Errors
/// [`StoreError::Corrupt`], also if a newer version has written it.
pub(crate) fn reply_of_bytes(bytes: &[u8]) -> Result<LetterReply, StoreError> {
    Ok(match of_bytes(bytes)? {
        ReplyJson::Settled => LetterReply::Settled,
        ReplyJson::HandedOn => LetterReply::HandedOn,
        ReplyJson::NotDelivered => LetterReply::NotDelivered,
        ReplyJson::AlreadySettled => LetterReply::AlreadySettled,
        ReplyJson::Unknown => LetterReply::Unknown,
        ReplyJson::NoSuchOption { known } => LetterReply::NoSuchOption { known },
        ReplyJson::NotAccepted { fault } => LetterReply::NotAccepted(match fault {
            FaultJson::UnknownOption => ReplyFault::UnknownOption,
            FaultJson::NotSeveral => ReplyFault::NotSeveral,
            FaultJson::Unmixable => ReplyFault::Unmixable,
            FaultJson::NoText => ReplyFault::NoText,
            FaultJson::NoNote => ReplyFault::NoNote,
            FaultJson::NoteWithoutRejection => ReplyFault::NoteWithoutRejection,
        }),
    })
}

fn to_bytes(json: &impl Serialize) -> Result<Vec<u8>, StoreError> {
    serde_json::to_vec(json).map_err(|error| StoreError::Unavailable(Box::new(error)))
}

fn of_bytes<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, StoreError> {
    serde_json::from_slice(bytes).map_err(|error| StoreError::Corrupt(format!("a letter: {error}")))
}
