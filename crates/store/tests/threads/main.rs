//! Threads beside each other, and what panics in them.

#[path = "../door/mod.rs"]
mod door;
#[path = "../sharing/mod.rs"]
mod sharing;

mod panics;
mod resources;
mod stalls;
mod stepped_threads;
mod storm;
mod threads;
