//! What a signal ends: nothing of a benchmark stays in the temporary folder, and a load says what
//! is kept.

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Workplace, wait_until};

/// A place whose folder `tmp` is where temporary folders are made.
fn place() -> Workplace {
    let place = Workplace::new();
    std::fs::create_dir(place.path("tmp")).expect("made");
    place
}

fn start(place: &Workplace, mut command: Command) -> Child {
    command.env("TMPDIR", place.path("tmp")).spawn().expect("starts")
}

/// What there is in the folder of temporary folders.
fn temporary_folders(place: &Workplace) -> Vec<PathBuf> {
    let found = std::fs::read_dir(place.path("tmp")).expect("a folder");
    found.map(|entry| entry.expect("an entry").path()).collect()
}

/// Waits until a store is in a temporary folder, and is written to.
fn wait_for_a_store(place: &Workplace, child: &mut Child) {
    let deadline = Instant::now() + Duration::from_secs(60);
    let is_there = || {
        let stores = temporary_folders(place).into_iter().map(|folder| folder.join("grf"));
        let mut stores = stores.filter_map(|store| std::fs::read_dir(store).ok());
        stores.any(|files| files.flatten().any(|file| file.path().extension().is_some()))
    };
    while !is_there() {
        let over = child.try_wait().expect("can be asked");
        if over.is_some() || Instant::now() > deadline {
            let _ = child.kill();
            panic!("no store in a temporary folder: {over:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether what is started here ignores a signal, as `nohup` makes it.
fn is_ignored(number: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask >> (number - 1) & 1 == 1)
}

fn send(signal: &str, child: &Child) {
    let status = Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status();
    assert!(status.expect("kill is there").success());
}

#[test] // Each interrupted benchmark left gigabytes behind.
fn a_benchmark_that_a_signal_ends_leaves_no_folder() {
    const WRITE: &str = "bench write --keys 2000000 --write-buffer 64KiB --threads 2 --sync never";
    const READ: &str = "bench read --keys 2000000 --no-sync";
    for (signal, number, command) in
        [("INT", 2, WRITE), ("INT", 2, READ), ("TERM", 15, WRITE), ("HUP", 1, WRITE)]
    {
        if is_ignored(number) {
            continue;
        }
        let place = place();
        let mut child = start(&place, place.command(command));
        wait_for_a_store(&place, &mut child);
        send(signal, &child);
        let output = child.wait_with_output().expect("ends");
        // A shell calls it 128 and the number.
        assert_eq!(output.status.signal(), Some(number), "{command}: {output:?}");
        assert_eq!(temporary_folders(&place), Vec::<PathBuf>::new(), "{command}, {signal}");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!stderr.contains("No such file"), "it ends by the signal alone: {stderr}");
    }
}

#[test]
fn a_benchmark_that_ends_leaves_no_folder() {
    let place = place();
    let child = start(&place, place.command("bench write --keys 2000 --sync never"));
    assert!(child.wait_with_output().expect("ends").status.success());
    assert_eq!(temporary_folders(&place), Vec::<PathBuf>::new());
    let failing = place.command("bench write --keys 2000 --rate 0");
    assert_eq!(start(&place, failing).wait_with_output().expect("ends").status.code(), Some(2));
    assert_eq!(temporary_folders(&place), Vec::<PathBuf>::new());
}

#[test] // It ended without a word.
fn an_interrupted_load_says_what_is_kept() {
    for (json, begin) in
        [("", "trommel: interrupted: "), ("--json", "{\"warning\":\"interrupted: ")]
    {
        let place = place();
        let mut child = start(&place, place.command(&format!("load --db s {json} -")));
        let mut input = child.stdin.take().expect("a pipe");
        let lines: String = (0..600).map(|number| format!("key{number:03}\n")).collect();
        input.write_all(lines.as_bytes()).expect("written");
        wait_until("a batch is written", || {
            place.path("s/MANIFEST").exists() && place.run("dump --db s").out.contains("key511\n")
        });
        // The count follows the write.
        std::thread::sleep(Duration::from_millis(200));
        send("INT", &child);
        let output = child.wait_with_output().expect("ends");
        assert_eq!(output.status.signal(), Some(2), "{output:?}");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            stderr.starts_with(begin) && stderr.contains("at least 512 keys loaded, and kept"),
            "{stderr}"
        );
        assert_eq!(place.run("scan --db s --keys-only").with_status(0).lines().count(), 512);
    }
}

#[test]
fn a_signal_that_is_ignored_ends_nothing() {
    let place = place();
    let program = env!("CARGO_BIN_EXE_trommel");
    let bench = "bench write --keys 20000 --value-bytes 92 --rate 1MiB --sync never";
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("trap '' INT HUP; exec '{program}' {bench}")])
        .stdout(Stdio::null());
    let mut child = start(&place, command);
    wait_for_a_store(&place, &mut child);
    send("INT", &child);
    send("HUP", &child);
    assert!(child.wait_with_output().expect("ends").status.success());
    assert_eq!(temporary_folders(&place), Vec::<PathBuf>::new());
}
