//! What cargo does not install beside the command: completions and manual pages.

use crate::common::Workplace;

#[test]
fn shells_complete_commands_and_options() {
    let place = Workplace::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = place.run(&format!("completions {shell}")).with_status(0);
        for word in ["checkpoint", "bits-per-key", "chucky-codes"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
        assert!(!script.contains("victim"), "{shell} completes a command that help leaves out");
    }
    place.run("completions tcsh").fails(2, &["bash", "zsh"]);
    let said = place.run("--json completions zsh").with_status(0);
    let said: serde_json::Value = serde_json::from_str(&said).expect("one object");
    assert!(said["script"].as_str().is_some_and(|script| script.starts_with("#compdef trommel")));
}

#[test]
fn a_shell_understands_its_completions() {
    let place = Workplace::new();
    place.file("script", place.run("completions bash").with_status(0));
    let asked = "source ./script; COMP_WORDS=(trommel check); COMP_CWORD=1; \
                 _trommel trommel check trommel; echo ${COMPREPLY[*]}";
    let mut shell = std::process::Command::new("bash");
    let Ok(output) = shell.args(["-c", asked]).current_dir(place.path(".")).output() else {
        return; // there is no bash here
    };
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "checkpoint");
}

#[test]
fn each_command_has_a_manual_page() {
    let place = Workplace::new();
    let first = place.run("man").with_status(0);
    assert!(first.contains(".TH trommel 1") && first.contains("trommel\\-load(1)"), "{first}");
    let said = place.run("man --dir share/man1").with_status(0);
    let pages = std::fs::read_dir(place.path("share/man1")).expect("a folder");
    let names: Vec<String> = pages
        .map(|page| page.expect("a page").file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(said.trim(), format!("{} pages in share/man1", names.len()));
    for name in ["trommel.1", "trommel-load.1", "trommel-bench-read.1", "trommel-man.1"] {
        assert!(names.iter().any(|one| one == name), "{name} of {names:?}");
    }
    assert!(!names.iter().any(|name| name.contains("victim")), "{names:?}");
    let kept = std::fs::read(place.path("share/man1/trommel.1")).expect("the first page");
    assert!(kept == first.as_bytes());
    place.file("occupied", "");
    place.run("man --dir occupied").fails(3, &["occupied"]);
    let said = place.run("--json man --dir share/man1").with_status(0);
    let said: serde_json::Value = serde_json::from_str(&said).expect("one object");
    assert_eq!(said["pages"], names.len());
}
