//! A disk in memory whose power can be cut at any step.
