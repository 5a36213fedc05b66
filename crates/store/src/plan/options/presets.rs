//! Presets: options for kinds of machines, as a starting point.
//! ```text
//! server         a machine for the store      more memory, half of the cores merge
//! small-device   a phone, a sensor            a few MiB, few files
//! many-stores    hundreds of them at once     a MiB each, few files
//! ```
//! Invariant: a preset sets nothing. It changes the values of options that nobody sets.

use std::thread::available_parallelism;

use super::{OptionValues, Options};
use crate::error::{Error, Result};
use crate::plan::background::Background;

impl Options {
    /// The names of the presets.
    pub const PRESETS: [&'static str; 3] = ["server", "small-device", "many-stores"];

    /// Returns the preset of this name.
    ///
    /// # Errors
    /// `Option`: no preset has this name. The error lists those that exist.
    pub fn preset(name: &str) -> Result<Options> {
        match name {
            "server" => Ok(Options::server()),
            "small-device" => Ok(Options::small_device()),
            "many-stores" => Ok(Options::many_stores()),
            _ => {
                let names = Options::PRESETS.join(", ");
                let problem = format!("there is no '{name}'; there are: {names}");
                Err(Error::Option { option: "preset".into(), problem })
            }
        }
    }

    /// For a machine dedicated to the store: half of its cores merge, 128 MiB of new entries, 1 GiB
    /// of cached blocks.
    pub fn server() -> Options {
        let cores = available_parallelism().map_or(2, usize::from);
        Options::of(OptionValues {
            write_buffer_bytes: 128 << 20,
            block_cache_bytes: 1 << 30,
            background: Background::Threads((cores / 2).max(1)),
            ..OptionValues::default()
        })
    }

    /// For a device with little memory and disk: at most some 20 MiB while it writes, tables of 8
    /// MiB, 64 of them open.
    pub fn small_device() -> Options {
        Options::of(OptionValues {
            write_buffer_bytes: 2 << 20,
            block_cache_bytes: 4 << 20,
            table_bytes: 8 << 20,
            partition_bytes: 16 << 20,
            merge_piece_bytes: 8 << 20,
            max_open_files: Some(64),
            ..OptionValues::default()
        })
    }

    /// For hundreds of stores in one process: 1 MiB of new entries, 1 MiB of cached blocks and 16
    /// open files each.
    pub fn many_stores() -> Options {
        Options::of(OptionValues {
            write_buffer_bytes: 1 << 20,
            block_cache_bytes: 1 << 20,
            table_bytes: 8 << 20,
            partition_bytes: 32 << 20,
            merge_piece_bytes: 8 << 20,
            max_open_files: Some(16),
            ..OptionValues::default()
        })
    }

    fn of(values: OptionValues) -> Options {
        Options { values, ..Options::default() }
    }
}
