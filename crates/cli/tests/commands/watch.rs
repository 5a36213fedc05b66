//! Watching, as programs do it: a look on each line.

use crate::common::Workplace;
use serde_json::Value;

fn looks(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a look is JSON")).collect()
}

#[test]
fn a_load_that_is_watched_tells_of_its_tree() {
    let place = Workplace::new();
    let lines: String = (0..20_000).map(|number| format!("key{number:05}\n")).collect();
    place.file("keys", lines);
    let command = "load --db s keys --write-buffer 64KiB --watch --every 0.02 --json";
    let text = place.run(command).with_status(0);
    let lines = looks(&text);
    let (report, looks) = lines.split_last().expect("a report");
    assert_eq!(report["loaded"], 20_000);
    // The last look is taken when all is loaded and flushed, however fast that went.
    let last = &looks.last().expect("a look")["tree"];
    let runs = last["runs"].as_array().expect("runs");
    let entries: u64 = runs.iter().map(|run| run["entries"].as_u64().expect("a number")).sum();
    assert_eq!((entries, &last["owner"]["writes"]), (20_000, &20_000.into()));
    assert_eq!(last["owner"]["guard"], "grf");
    let seconds: Vec<f64> = looks.iter().filter_map(|look| look["seconds"].as_f64()).collect();
    assert!(seconds.len() == looks.len() && seconds.is_sorted(), "{seconds:?}");
    assert!(looks[1..].iter().all(|look| look["per_second"]["writes"].is_f64()), "{text}");
}

#[test]
fn a_store_that_is_open_elsewhere_is_watched_through_its_manifest() {
    let place = Workplace::new();
    place.file("keys", "a\nb\nc\n");
    place.run("load --db s keys").with_status(0);
    let held = trommel::Db::open(place.path("s"), trommel::Options::default()).expect("opens");
    // Or it is read along.
    let picture = place.run("inspect --db s");
    assert!(picture.err.contains("as another process has written it"), "{}", picture.err);
    picture.with_status(0);
    let command = "inspect --db s --watch --json --looks 2 --every 0.02";
    let seen = looks(&place.run(command).with_status(0));
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0]["tree"]["runs"][0]["entries"], 3);
    assert!(seen.iter().all(|look| look["tree"]["owner"].is_null()), "{seen:?}");
    assert!(seen.iter().all(|look| look["per_second"].is_null()), "{seen:?}");
    held.put("d", "").expect("puts");
    held.flush().expect("flushes");
    let seen = looks(&place.run(command).with_status(0));
    // In one run or in two: they merge meanwhile.
    let runs = seen[1]["tree"]["runs"].as_array().expect("runs");
    let entries: u64 = runs.iter().map(|run| run["entries"].as_u64().expect("a number")).sum();
    assert_eq!((entries, &runs[0]["span"][1]), (4, &2.into()));
}

#[test]
fn a_picture_needs_a_terminal_and_a_store() {
    let place = Workplace::new();
    place.run("inspect --db nowhere --watch --json").fails(3, &["there is no store here"]);
    assert!(!place.path("nowhere").exists(), "looking makes nothing");
    place.file("keys", "a\n");
    place.run("load --db s keys --watch").fails(2, &["terminal", "--json"]);
    place.run("load --db s keys --every 1").fails(2, &["--watch"]);
    place.run("load --db s keys --watch --every 0").fails(2, &["0.02 seconds"]);
}

#[test]
fn benchmarks_are_watched_too() {
    let place = Workplace::new();
    let write = "bench write --keys 20000 --write-buffer 64KiB --db w --watch --every 0.02 --json";
    let lines = looks(&place.run(write).with_status(0));
    let (report, seen) = lines.split_last().expect("a report");
    assert_eq!((&report["wrong_answers"], seen.is_empty()), (&0.into(), false));
    assert!(seen[0]["tree"]["store"].as_str().is_some_and(|name| name.ends_with("grf")));
    let read = "bench read --keys 5000 --queries 500 --levels 2 --size-ratio 4 --no-sync --watch --every 0.02 --json";
    let lines = looks(&place.run(read).with_status(0));
    let (report, seen) = lines.split_last().expect("a report");
    assert_eq!((&report["false_negatives"], seen.is_empty()), (&0.into(), false));
}

/// A terminal without a window: what programs write to it is read at the other end, where keys are
/// typed, too.
struct Terminal {
    written: std::sync::mpsc::Receiver<Vec<u8>>,
    keys: std::fs::File,
    own: std::fs::File,
}

impl Terminal {
    fn open() -> Self {
        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
        let other_end = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&other_end).expect("granted");
        unlockpt(&other_end).expect("unlocked");
        let name = ptsname(&other_end, Vec::new()).expect("a name").into_string().expect("text");
        let own = std::fs::File::options().read(true).write(true).open(name).expect("opens");
        let size = rustix::termios::Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&own, size).expect("a size");
        let mut other_end = std::fs::File::from(other_end);
        let keys = other_end.try_clone().expect("another handle");
        let (send, written) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            use std::io::Read;
            let mut piece = [0; 4096];
            while let Ok(count) = other_end.read(&mut piece)
                && send.send(piece[..count].to_vec()).is_ok()
            {}
        });
        Terminal { written, keys, own }
    }

    /// How it treats what is typed and written.
    fn modes(&self) -> (rustix::termios::LocalModes, rustix::termios::OutputModes) {
        let modes = rustix::termios::tcgetattr(&self.own).expect("a terminal");
        (modes.local_modes, modes.output_modes)
    }

    /// Reads what is written until all of some words have come.
    fn read_until(&self, words: &[&str]) {
        let mut text = String::new();
        while !words.iter().all(|word| text.contains(word)) {
            let piece = self.written.recv_timeout(std::time::Duration::from_secs(60));
            let piece = piece.unwrap_or_else(|_| panic!("{words:?} did not come: {text}"));
            text += &String::from_utf8_lossy(&piece);
        }
    }
}

const PICTURE: &str = "\x1b[?1049h";
const NO_PICTURE: &str = "\x1b[?1049l";

#[test]
fn ctrl_c_in_a_picture_of_a_benchmark_removes_its_folder() {
    use std::io::Write;
    use std::os::unix::process::ExitStatusExt;
    let place = Workplace::new();
    std::fs::create_dir(place.path("tmp")).expect("made");
    let mut terminal = Terminal::open();
    let before = terminal.modes();
    let bench = "bench write --keys 2000000 --write-buffer 64KiB --sync never --watch --every 0.02";
    let mut command = place.command(bench);
    command.env("TMPDIR", place.path("tmp"));
    let own = || terminal.own.try_clone().expect("another handle");
    let mut child = command.stdin(own()).stdout(own()).spawn().expect("starts");
    terminal.read_until(&[PICTURE, "level"]);
    terminal.keys.write_all(b"\x03").expect("typed");
    terminal.read_until(&[NO_PICTURE]);
    let ended = child.wait().expect("ends");
    assert_eq!((ended.signal(), terminal.modes()), (Some(2), before), "{ended:?}");
    assert_eq!(std::fs::read_dir(place.path("tmp")).expect("a folder").count(), 0);
}

#[test]
fn signals_give_the_terminal_back() {
    use std::os::unix::process::ExitStatusExt;
    let place = Workplace::new();
    place.file("keys", "a\nb\nc\n");
    place.run("load --db s keys").with_status(0);
    for (signal, number) in [("TERM", 15), ("INT", 2)] {
        let terminal = Terminal::open();
        let before = terminal.modes();
        let mut command = place.command("inspect --db s --watch --every 0.02");
        let own = || terminal.own.try_clone().expect("another handle");
        let mut child = command.stdin(own()).stdout(own()).spawn().expect("starts");
        terminal.read_until(&[PICTURE, "level"]);
        assert_ne!(terminal.modes(), before, "keys are heard one by one");
        let status = std::process::Command::new("kill")
            .args([format!("-{signal}"), child.id().to_string()])
            .status();
        assert!(status.expect("kill is there").success());
        terminal.read_until(&[NO_PICTURE]);
        let ended = child.wait().expect("ends");
        assert_eq!(ended.signal(), Some(number), "{ended:?}");
        assert_eq!(terminal.modes(), before, "after {signal}");
    }
}
