//! The operating system's view of this process: files, threads, memory, time.
//! ```text
//! /proc/self/fd    what is open      /proc/self/task   threads      /proc/self/status   memory
//! ```
//! Invariant: without /proc there are no open files, threads or memory to see, and the laws hold
//! trivially.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Returns the CPU time that this thread has used.
pub(super) fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Returns the files of a folder that this process has open, including removed ones.
pub(super) fn open_files(folder: &Path) -> Vec<PathBuf> {
    // The system reports paths without symbolic links.
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let files = entries.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    files.filter(|file| file.starts_with(&folder)).collect()
}

/// Returns the names of threads that belong to stores.
pub(super) fn store_threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    let own = std::fs::read_to_string("/proc/self/comm").unwrap_or_default();
    of_stores(names.map(|name| name.trim_end().to_string()), own.trim_end())
}

/// Selects the names of threads that belong to stores. The first thread, and threads without a
/// name, have the name of the process.
fn of_stores(names: impl Iterator<Item = String>, own: &str) -> Vec<String> {
    // Threads of the pool that reads belong to no store.
    let of_store = |name: &str| name.starts_with("trommel-") && name != "trommel-disk";
    names.filter(|name| of_store(name) && name != own).collect()
}

/// Returns the resident memory of this process, in bytes.
pub(super) fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = resident.and_then(|text| text.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_program_may_have_a_name_like_a_thread_of_a_store() {
        let names = ["trommel-asan", "trommel-flush", "trommel-disk", "other", "trommel-asan"];
        let names = names.map(String::from);
        assert_eq!(of_stores(names.clone().into_iter(), "trommel-asan"), ["trommel-flush"]);
        assert_eq!(of_stores(names.into_iter(), "other").len(), 3);
    }

    #[test]
    fn open_files_are_seen_and_closed_ones_are_not() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = std::fs::File::create(folder.path().join("one")).expect("made");
        assert_eq!(open_files(folder.path()).len(), 1);
        drop(file);
        assert_eq!(open_files(folder.path()).len(), 0);
        assert!(resident_bytes() > 1 << 20);
        let before = cpu_time();
        while cpu_time() == before {}
    }
}
