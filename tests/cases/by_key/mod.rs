//! Records found by their keys: `get`, `consume --key`, and `produce --unique`, which
//! stores each key once.

mod consume;
mod get;
mod index;
mod unique;
