//! Turns that cannot be packed must not keep the others from being packed.

use std::sync::{Mutex, PoisonError};

/// A turn, in the order in which turns are packed. The default is before all turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TurnPlace {
    pub(crate) agent: i64,
    pub(crate) number: i32,
}

/// The last turn that could not be packed. The next one is looked for after it, and at the end from the first again.
#[derive(Debug, Default)]
pub(crate) struct PassedOver(Mutex<TurnPlace>);

impl PassedOver {
    pub(crate) fn last(&self) -> TurnPlace {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn pass_over(&self, place: TurnPlace) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = place;
    }

    /// No turn is left after the last one. Returns whether there may be others before it.
    pub(crate) fn begin_anew(&self) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *last) != TurnPlace::default()
    }
}
