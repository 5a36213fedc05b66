//! The program that has the other engines: where it is, and what it answers.
//! ```text
//! task as JSON --> trommel-peers --> reports as JSON      other engines need other compilers
//! ```
//! Invariant: its standard error is passed through; an answer that has no reports is an error.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::de::DeserializeOwned;
use trommel_lab::PeerTask;

use crate::process::failure::Failure;

/// What the program is called.
const PROGRAM: &str = "trommel-peers";
const BUILD: &str = "cargo build --release --manifest-path crates/peers/Cargo.toml";

/// Where the program is.
pub(crate) struct PeerProgram(PathBuf);

impl PeerProgram {
    /// As it was named, beside this one, or in PATH.
    pub(crate) fn find(named: Option<&Path>) -> Result<PeerProgram, Failure> {
        let missing = |what: String| {
            Failure::Data(format!(
                "{what}. `{BUILD}` builds it; name it with --program, or put it beside this program or into a folder of PATH"
            ))
        };
        if let Some(named) = named {
            let is_there = named.is_file();
            return is_there
                .then(|| PeerProgram(named.to_path_buf()))
                .ok_or_else(|| missing(format!("{}: there is no such program", named.display())));
        }
        let own = std::env::current_exe().ok();
        let beside = own.as_deref().and_then(Path::parent).map(Path::to_path_buf);
        let path = std::env::var_os("PATH").unwrap_or_default();
        found_in(beside.into_iter().chain(std::env::split_paths(&path)), OsStr::new(PROGRAM))
            .map(PeerProgram)
            .ok_or_else(|| missing(format!("{PROGRAM}, which has the other engines, is not here")))
    }

    /// Sends a task; returns the reports.
    pub(crate) fn ask<R: DeserializeOwned>(&self, task: &PeerTask) -> Result<Vec<R>, Failure> {
        let told = self.told(&serde_json::to_vec(task)?)?;
        serde_json::from_slice(&told).map_err(|error| {
            Failure::Data(format!("{}: it told no reports: {error}", self.0.display()))
        })
    }

    /// Its standard output for the task.
    fn told(&self, task: &[u8]) -> Result<Vec<u8>, Failure> {
        let failed =
            |error: std::io::Error| Failure::Data(format!("{}: {error}", self.0.display()));
        let mut child = Command::new(&self.0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let input = child.stdin.take();
        // A program that ends without reading prints its own reason.
        let written = input.map_or(Ok(()), |mut input| input.write_all(task));
        let ended = child.wait_with_output().map_err(failed)?;
        match ended.status.code() {
            Some(0) => written.map_err(failed).map(|()| ended.stdout),
            Some(2) => Err(Failure::Usage(format!("{PROGRAM} refused the plan"))),
            _ => Err(Failure::Data(format!("{}: {}", self.0.display(), ended.status))),
        }
    }
}

/// The first of some folders' files of this name.
fn found_in(folders: impl Iterator<Item = PathBuf>, name: &OsStr) -> Option<PathBuf> {
    let name = Path::new(name).with_extension(std::env::consts::EXE_EXTENSION);
    folders.map(|folder| folder.join(&name)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_found_in_the_first_folder_that_has_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let folders: Vec<PathBuf> =
            ["a", "b", "c"].iter().map(|name| folder.path().join(name)).collect();
        let file = Path::new(PROGRAM).with_extension(std::env::consts::EXE_EXTENSION);
        for folder in &folders[1..] {
            std::fs::create_dir(folder).expect("made");
            std::fs::write(folder.join(&file), "").expect("written");
        }
        let found = found_in(folders.clone().into_iter(), OsStr::new(PROGRAM));
        assert_eq!(found, Some(folders[1].join(&file)));
        assert_eq!(found_in(folders[..1].iter().cloned(), OsStr::new(PROGRAM)), None);
    }
}
