//! The binary: picks the adapters, starts the server, and the command line.
