//! Much data, many processes, long waits: small enough for every run by default,
//! in full with `TAPELOG_LONG=1`.

mod eight_producers;
mod follower;
mod killed;
mod many_keys;
mod memory;
mod round_trip;
