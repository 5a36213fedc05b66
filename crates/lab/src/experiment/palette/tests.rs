//! Tests of contrasts, as WCAG 2.2 defines them.

use super::*;

const TEXT_LEAST: f64 = 4.5;
const SHAPE_LEAST: f64 = 3.0;

/// Returns the relative luminance: 0 for black, 1 for white.
fn luminance(colour: &str) -> f64 {
    let part = |place: usize| {
        let byte = u8::from_str_radix(&colour[place..place + 2], 16).expect("two digits");
        match f64::from(byte) / 255.0 {
            share if share <= 0.040_45 => share / 12.92,
            share => ((share + 0.055) / 1.055).powf(2.4),
        }
    };
    0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
}

fn contrast(one: &str, other: &str) -> f64 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

/// Returns the pairs whose contrast is below `least` in one of the modes.
fn too_close(tops: &[Colour], grounds: &[Colour], least: f64) -> Vec<String> {
    let pairs = tops.iter().flat_map(|top| grounds.iter().map(move |ground| (top, ground)));
    let found = pairs.flat_map(|(top, ground)| {
        [(top.light, ground.light), (top.dark, ground.dark)].map(|(above, below)| {
            let has = contrast(above, below);
            (has < least).then(|| format!("{} on {}: {has:.2}", top.name, ground.name))
        })
    });
    found.flatten().collect()
}

#[test]
fn contrast_is_what_the_standard_says() {
    assert!((contrast("#000000", "#ffffff") - 21.0).abs() < 1e-9);
    assert!((contrast("#777777", "#ffffff") - 4.48).abs() < 0.01, "its well-known near miss");
    let grey = colour("grey", "#777777", "#777777");
    assert_eq!(
        too_close(&[grey], &[PAPER], TEXT_LEAST),
        ["grey on paper: 4.48", "grey on paper: 4.23"]
    );
}

#[test]
fn texts_can_be_read_in_both_modes() {
    let boxes = [&LEVELS[..], &BOXES[..]].concat();
    let none: [String; 0] = [];
    assert_eq!(too_close(&TEXTS, &GROUNDS, TEXT_LEAST), none);
    assert_eq!(too_close(&[INK], &boxes, TEXT_LEAST), none);
}

#[test]
fn shapes_can_be_seen_in_both_modes() {
    let shapes = [&CURVES[..], &[AXIS]].concat();
    let none: [String; 0] = [];
    assert_eq!(too_close(&shapes, &[PAPER], SHAPE_LEAST), none);
    let mark = TEXTS.into_iter().filter(|text| text.name == "mark").collect::<Vec<_>>();
    assert_eq!(too_close(&mark, &LEVELS, SHAPE_LEAST), none, "frames of runs");
}

#[test]
fn terminals_of_both_kinds_show_levels() {
    for colour in TERMINAL {
        let least = contrast(colour, "#000000").min(contrast(colour, "#ffffff"));
        assert!(least >= TEXT_LEAST, "{colour}: {least:.2}");
    }
}

#[test]
fn style_sheets_have_both_modes() {
    let sheet = rules([("text".to_string(), "fill", INK)].into_iter());
    let dark = "@media(prefers-color-scheme:dark){text{fill:#e6edf3}}";
    assert_eq!(sheet, format!("text{{fill:#1f2328}}{dark}"));
    let names: std::collections::BTreeSet<_> = all().map(|colour| colour.name).collect();
    assert_eq!(names.len(), all().count(), "each name once");
    assert_eq!(variables().matches("--ink:").count(), 2);
}
