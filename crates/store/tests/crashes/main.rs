//! What is left after crashes, faults and damage, and of copies: checkpoints, backups, followers.

#[path = "../door/mod.rs"]
mod door;

mod backups;
mod checkpoint;
mod corrupt;
mod crash;
mod direct;
mod faults;
mod follow;
mod grown_manifest;
mod held_disk;
#[cfg(unix)]
mod moved_folder;
mod recovery;
mod repair;
mod repair_histories;
mod rules;
