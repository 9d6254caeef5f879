//! What a permission request accepts besides one option, in a line that clients receive. Only what is accepted is
//! there.

use std::ops::Not;

use serde::{Deserialize, Serialize};
use tokenrail_domain::Accepts;

/// The fields of [`Accepts`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "Accepts")]
pub(super) struct AcceptsFields {
    #[serde(default, skip_serializing_if = "Not::not")]
    note: bool,
    #[serde(default, skip_serializing_if = "Not::not")]
    text: bool,
    #[serde(default, skip_serializing_if = "Not::not")]
    several: bool,
}
