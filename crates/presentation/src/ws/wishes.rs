//! What a client wishes for the whole connection, as its query says.

use std::time::Duration;

use crate::error::Problem;
use crate::query::Query;
use crate::vocabularies::native::Dialect;

/// How long frames or text may be told to wait, in milliseconds.
const WAIT_MAX_MS: u64 = 1000;
/// How long frames are collected where it is not said how long.
const BATCH_MS: u64 = 50;
/// How often text is let out where it is not said how often, and how many bytes of it.
const THROTTLE_MS: u64 = 4;
const THROTTLE_BYTES: usize = 4096;
/// The bounds of a wish for those bytes. Less than the longest character would never be let out.
const THROTTLE_BYTES_MIN: usize = 16;
const THROTTLE_BYTES_MAX: usize = 1 << 20;

/// What a client wishes for the whole connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wishes {
    pub(crate) dialect: Dialect,
    /// Tell deltas that follow one another at once.
    pub(crate) packed: bool,
    /// Collect frames for so long.
    pub(crate) batch: Option<Duration>,
    /// Let text of the dialect `stream` out in measure.
    pub(crate) throttle: Option<Pace>,
}

/// How much text is let out, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pace {
    pub(crate) wait: Duration,
    pub(crate) bytes: usize,
}

impl Wishes {
    /// Reads them.
    ///
    /// # Errors
    /// [`Problem`], which names the parameter.
    pub(crate) fn of(query: &Query) -> Result<Self, Problem> {
        let dialect = query.get("dialect").map(Dialect::named).transpose()?.unwrap_or_default();
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
        // Whoever says how much has asked for it.
        let pace = pace.or(bytes.map(|_| Duration::from_millis(THROTTLE_MS)));
        let throttle = pace.map(|wait| Pace { wait, bytes: bytes.unwrap_or(THROTTLE_BYTES) });
        Ok(Self { dialect, packed, batch, throttle })
    }
}

/// A parameter that says how long to wait; empty: as long as is usual.
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
