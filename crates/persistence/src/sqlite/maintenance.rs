//! What operators and starts do with a whole database: copy it, examine it, check it.

pub(crate) mod backup;
pub(crate) mod doctor;
pub(crate) mod start_check;
