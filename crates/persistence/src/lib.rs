//! SQLite behind the ports: with migrations/, the only SQL of Tokenrail.
