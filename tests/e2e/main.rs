//! User stories.
