//! The rules about how the source is built, checked by machine. What is right for
//! one place only stands in an allow-list with its reason; an entry that nothing
//! needs any more fails too.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on panics")]

mod calls;
mod files;
mod layers;
mod source;
mod words;
