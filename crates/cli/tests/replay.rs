//! The page that plays a tree back, as far as no browser is needed. (`scripts/check-replay.sh` opens it in one.)

mod common;

use common::Workplace;
use serde_json::Value;

#[test]
fn a_page_holds_all_that_it_needs() {
    let place = Workplace::new();
    let told = place.run("replay grown.html --flushes 20 --follow 5 --json").json(0);
    assert_eq!((&told["flushes"], &told["keys"]), (&20.into(), &7.into()));
    let page = std::fs::read_to_string(place.path("grown.html")).expect("was written");
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    let outside = ["http:", "https:", "src=", "href=", "url(", "import"];
    outside.iter().for_each(|word| assert!(!page.contains(word), "{word} leads out of the page"));
    let json = page.lines().find_map(|line| line.strip_prefix("const recording = "));
    let json = json.and_then(|line| line.strip_suffix(';')).expect("the recording");
    assert!(!json.contains('<'), "nothing in it can end the script");
    let recording: Value = serde_json::from_str(json).expect("JSON");
    let steps = recording["steps"].as_array().expect("steps");
    let of_kind = |kind: &str| steps.iter().filter(|step| step["event"]["kind"] == kind).count();
    assert_eq!((of_kind("begin"), of_kind("flush")), (1, 20));
    assert_eq!(Some(of_kind("merge") as u64), told["merges"].as_u64());
    let colours = page.lines().find_map(|line| line.strip_prefix("const colours = "));
    assert!(colours.is_some_and(|line| line.starts_with("[\"#")), "{colours:?}");
}

#[test]
fn what_cannot_be_recorded_is_named() {
    let place = Workplace::new();
    place.run("replay grown.html --guard bloom").fails(2, &["bloom", "codes"]);
    place.run("replay grown.html --flushes 0").fails(2, &["flushes"]);
    place.run("replay nowhere/grown.html --flushes 2").fails(3, &["nowhere/grown.html"]);
    assert!(!place.path("grown.html").exists());
}
