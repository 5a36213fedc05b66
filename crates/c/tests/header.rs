//! The header is what cbindgen makes of the sources now. `TROMMEL_WRITE_HEADER=1` writes it.

use std::fs;
use std::path::Path;

const PATH: &str = "include/trommel.h";

fn made() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).expect("cbindgen.toml");
    let builder = cbindgen::Builder::new().with_config(config).with_src(folder.join("src/lib.rs"));
    let mut text = Vec::new();
    builder.generate().expect("the sources are read").write(&mut text);
    let text = String::from_utf8(text).expect("text");
    let lines = text.lines().map(str::trim_end);
    lines.fold(String::new(), |text, line| text + line + "\n").replace("\n\n\n", "\n\n")
}

#[test]
fn the_header_is_as_the_sources_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PATH);
    let made = made();
    if std::env::var_os("TROMMEL_WRITE_HEADER").is_some() {
        fs::write(&path, &made).expect("the header can be written");
    }
    let there = fs::read_to_string(&path).expect("the header");
    let first = made.lines().zip(there.lines()).position(|(made, there)| made != there);
    assert!(
        made == there,
        "crates/c/{PATH} is not what the sources say, from line {:?} on: scripts/test-c.sh header",
        first.map(|line| line + 1)
    );
}

#[test]
fn every_exported_function_is_declared() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let header = made();
    let mut count = 0;
    for file in fs::read_dir(sources).expect("sources") {
        let text = fs::read_to_string(file.expect("a file").path()).expect("text");
        for part in text.split("extern \"C\" fn ").skip(1) {
            let name = &part[..part.find('(').expect("arguments")];
            assert!(header.contains(&format!("{name}(")), "{name} is not in the header");
            count += 1;
        }
    }
    assert!(count > 100, "only {count} functions were found");
}
