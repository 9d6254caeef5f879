//! What Tokenrail does: launch, pump, follow, cancel, recover.
