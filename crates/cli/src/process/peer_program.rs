//! The program that has the other engines: how it is found, and what it answers.
//! ```text
//! task as JSON --> trommel-peers --> reports as JSON      other engines need other compilers
//!                                --> a native stream of entries, of another engine's store
//! ```
//! Invariant: its standard error is passed through. An answer without reports is an error.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use trommel_lab::PeerTask;

use crate::process::failure::Failure;

/// The name of the program.
const PROGRAM: &str = "trommel-peers";
/// How long a program that has closed its output may take to end.
const SOON: Duration = Duration::from_secs(1);
const BUILD: &str = "cargo build --release --manifest-path crates/peers/Cargo.toml";

/// The path of the program.
pub(crate) struct PeerProgram(PathBuf);

impl PeerProgram {
    /// Finds the program: as named, next to this program, or in PATH.
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

    /// Sends a task. Returns the reports.
    pub(crate) fn ask<R: DeserializeOwned>(&self, task: &PeerTask) -> Result<Vec<R>, Failure> {
        let output = self.output(&serde_json::to_vec(task)?)?;
        serde_json::from_slice(&output).map_err(|error| {
            Failure::Data(format!("{}: it told no reports: {error}", self.0.display()))
        })
    }

    /// Sends a task. Returns the stream of entries that the program writes. Only the program's end
    /// shows whether it succeeded.
    pub(crate) fn stream(&self, task: &PeerTask) -> Result<(PeerStream, ChildStdout), Failure> {
        let (mut child, written) = self.started(&serde_json::to_vec(task)?)?;
        let output = child.stdout.take().expect("standard output is a pipe");
        Ok((PeerStream { program: self.0.clone(), child, written }, output))
    }

    /// Returns its standard output for the task.
    fn output(&self, task: &[u8]) -> Result<Vec<u8>, Failure> {
        let (child, written) = self.started(task)?;
        let ended = child.wait_with_output().map_err(|error| failed(&self.0, &error))?;
        judged(&self.0, ended.status, written).map(|()| ended.stdout)
    }

    /// Starts the program and sends a task. Returns also whether the program accepted the task.
    fn started(&self, task: &[u8]) -> Result<(Child, std::io::Result<()>), Failure> {
        let mut child = Command::new(&self.0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed(&self.0, &error))?;
        let input = child.stdin.take();
        let written = input.map_or(Ok(()), |mut input| input.write_all(task));
        Ok((child, written))
    }
}

/// A running program that writes a stream.
pub(crate) struct PeerStream {
    program: PathBuf,
    child: Child,
    written: std::io::Result<()>,
}

impl PeerStream {
    /// Waits until the program ends; an error if it failed. Requires: its output was read to the
    /// end, or is closed.
    pub(crate) fn end(&mut self) -> Result<(), Failure> {
        let status = self.child.wait().map_err(|error| failed(&self.program, &error))?;
        judged(&self.program, status, std::mem::replace(&mut self.written, Ok(())))
    }

    /// Returns an error if the program has failed, or does so soon; its stream was malformed. A
    /// program that keeps running is no error.
    pub(crate) fn end_soon(&mut self) -> Result<(), Failure> {
        let deadline = Instant::now() + SOON;
        while Instant::now() < deadline {
            if self.child.try_wait().is_ok_and(|status| status.is_some()) {
                return self.end();
            }
            std::thread::sleep(SOON / 100);
        }
        Ok(())
    }
}

impl Drop for PeerStream {
    fn drop(&mut self) {
        // The program may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn failed(program: &Path, error: &std::io::Error) -> Failure {
    Failure::Data(format!("{}: {error}", program.display()))
}

/// Interprets the exit status. A program that ends without reading prints its own reason.
fn judged(program: &Path, status: ExitStatus, written: std::io::Result<()>) -> Result<(), Failure> {
    match status.code() {
        Some(0) => written.map_err(|error| failed(program, &error)),
        Some(2) => Err(Failure::Usage(format!("{PROGRAM} refused the plan"))),
        _ => Err(Failure::Data(format!("{}: {status}", program.display()))),
    }
}

/// Returns the first file with this name in some folders.
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
