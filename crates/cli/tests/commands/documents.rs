//! Documents that commands make are what the commands make now.

use std::path::{Path, PathBuf};

use crate::common::Workplace;

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Names and texts of a folder's files.
fn files(folder: &Path) -> Vec<(String, String)> {
    let entries =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    let mut found: Vec<(String, String)> = entries
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), text(&entry.path())))
        .collect();
    found.sort();
    found
}

#[test]
fn the_reference_of_the_command_is_current() {
    let made = Workplace::new().run("help-markdown").with_status(0);
    let kept = text(&project().join("docs/cli.md"));
    assert!(made == kept, "cargo run --release -- help-markdown > docs/cli.md");
}

#[test]
fn the_results_and_their_figures_are_current() {
    let place = Workplace::new();
    let report = "lab report --machine amd-epyc-2-cores --scale full --markdown results.md";
    let mut command = place.command(report);
    command.arg("--plans").arg(project().join("plans"));
    command.arg("--records").arg(project().join("records"));
    let ended = command.output().expect("started");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let kept = text(&project().join("docs/results.md"));
    assert!(text(&place.path("results.md")) == kept, "run the command that stands in results.md");
    let kept = files(&project().join("docs/figures"));
    assert_eq!(kept.len(), kept.iter().filter(|(name, _)| name.ends_with(".svg")).count());
    for (name, figure) in &kept {
        assert!(
            crate::common::smallest_text(figure) >= 9.0,
            "{name} cannot be read in a narrow window"
        );
        assert!(figure.contains("prefers-color-scheme:dark"), "{name} has one mode");
    }
    for (made, kept) in files(&place.path("figures")).iter().zip(&kept) {
        assert!(made == kept, "{}: run the command that stands in results.md", made.0);
    }
    assert_eq!(files(&place.path("figures")).len(), kept.len());
}
