//! What the store answers, under every guard: keys, ranges, counts, and what it costs to ask.

#[path = "../door/mod.rs"]
mod door;
#[path = "../shapes/mod.rs"]
mod shapes;

mod cached;
mod count;
mod elastic;
mod filter_memory;
mod filter_tuning;
mod image;
mod knob;
mod lanes;
mod misplaced;
mod missing;
mod model;
mod monkey;
mod multi_get;
mod numbers;
mod overlaps;
mod packed;
mod partial;
mod partitions;
mod questions;
mod ranges;
mod remix;
mod seek;
mod shapes_of_trees;
mod single_keys;
mod text;
mod trimmed;
mod warm;
