//! Reads what agents print and tells it as Tokenrail's events.
