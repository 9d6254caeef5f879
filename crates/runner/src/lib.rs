//! Ways to run an agent: a supervised process, an HTTP proxy, a recorded transcript.
