//! The options of a connection, from the query of the client.

use std::time::Duration;

use crate::error::Problem;
use crate::query::Query;
use crate::vocabularies::native::Dialect;

/// The maximum of `batch` and `throttle`, in milliseconds.
const WAIT_MAX_MS: u64 = 1000;
/// How long frames are collected if `batch` is empty or `true`, in milliseconds.
const BATCH_MS: u64 = 50;
/// How often text is sent if `throttle` is empty or `true`, in milliseconds, and how many bytes of it by default.
const THROTTLE_MS: u64 = 4;
const THROTTLE_BYTES: usize = 4096;
/// The range of `throttleBytes`. A limit below the length of the longest character would never let it out.
const THROTTLE_BYTES_MIN: usize = 16;
const THROTTLE_BYTES_MAX: usize = 1 << 20;

/// The options that a client has chosen for the whole connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wishes {
    pub(crate) dialect: Dialect,
    /// Combine consecutive deltas into one frame.
    pub(crate) packed: bool,
    /// How long frames are collected into a batch. `None`: no batches.
    pub(crate) batch: Option<Duration>,
    /// Throttle the text of the dialect `stream`.
    pub(crate) throttle: Option<Pace>,
}

/// How much text is sent at once, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pace {
    pub(crate) wait: Duration,
    pub(crate) bytes: usize,
}

impl Wishes {
    /// Reads the options.
    ///
    /// # Errors
    /// [`Problem`] if a parameter is invalid. It names the parameter.
    pub(crate) fn of(query: &Query) -> Result<Self, Problem> {
        let dialect = query.get("dialect").map(Dialect::from_name).transpose()?.unwrap_or_default();
        let packed = query.flag("packed")?;
        let batch = wait(query, "batch", BATCH_MS)?;
        let bytes = match query.get("throttleBytes") {
            None => None,
            Some(text) => match text.parse() {
                Ok(bytes) if (THROTTLE_BYTES_MIN..=THROTTLE_BYTES_MAX).contains(&bytes) => Some(bytes),
                _ => {
                    let wrong = "must be a number of bytes, 16 to 1048576";
                    return Err(Problem::parameter("throttleBytes", wrong));
                }
            },
        };
        let pace = wait(query, "throttle", THROTTLE_MS)?;
        // `throttleBytes` alone turns the throttle on, too.
        let pace = pace.or(bytes.map(|_| Duration::from_millis(THROTTLE_MS)));
        let throttle = pace.map(|wait| Pace { wait, bytes: bytes.unwrap_or(THROTTLE_BYTES) });
        Ok(Self { dialect, packed, batch, throttle })
    }
}

/// A parameter that says how long to wait. If it is empty or `true`, the default applies.
fn wait(query: &Query, name: &'static str, usual_ms: u64) -> Result<Option<Duration>, Problem> {
    let ms = match query.get(name) {
        None | Some("false") => return Ok(None),
        Some("" | "true") => usual_ms,
        Some(text) => match text.parse() {
            Ok(ms) if (1..=WAIT_MAX_MS).contains(&ms) => ms,
            _ => return Err(Problem::parameter(name, "must be a number of milliseconds, 1 to 1000")),
        },
    };
    Ok(Some(Duration::from_millis(ms)))
}
