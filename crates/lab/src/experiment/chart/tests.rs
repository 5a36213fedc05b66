//! Tests that pictures are readable, in both modes and in narrow windows.

use super::*;
use crate::experiment::figure::{AxisScale, Curve};

const NAMES: [&str; 9] =
    ["grf", "chucky", "snarf", "bloom", "remix", "surf", "none", "an eighth", "<a & b>"];

/// Builds a figure. Its x are numbers, or names.
fn figure(mark: Mark, y_scale: AxisScale, panels: usize, curves: usize, has_names: bool) -> Figure {
    let x_names = ["point miss", "empty range", "seek and 50 next"].map(String::from).to_vec();
    let curve = |name: usize| {
        let points = (0..3).map(|x| (f64::from(x), 1234.0 * (f64::from(x) + name as f64)));
        Curve { name, points: points.collect() }
    };
    let panel = |nth: usize| Panel {
        title: if panels == 1 { String::new() } else { format!("panel {nth}, of a long name") },
        curves: (0..curves).map(curve).collect(),
    };
    Figure {
        title: "What it is".into(),
        mark,
        x_label: "what was asked".into(),
        x_scale: AxisScale::Linear,
        y_label: "time (ns)".into(),
        y_scale,
        x_names: has_names.then_some(x_names),
        curve_names: NAMES[..curves].iter().map(|name| name.to_string()).collect(),
        panels: (0..panels).map(panel).collect(),
        laws: Vec::new(),
    }
}

/// Builds figures of all kinds.
fn figures() -> Vec<Figure> {
    let mut found = Vec::new();
    for scale in [AxisScale::Linear, AxisScale::Log] {
        for (mark, has_names) in
            [(Mark::Lines, false), (Mark::Points, false), (Mark::Points, true), (Mark::Bars, true)]
        {
            for panels in 1..=6 {
                found.extend([1, 9].map(|curves| figure(mark, scale, panels, curves, has_names)));
            }
        }
    }
    found
}

/// Returns the numbers of an attribute.
fn attribute(svg: &str, name: &str) -> Vec<f64> {
    let before = format!(" {name}=\"");
    let values = svg.split(&before).skip(1);
    let values = values.filter_map(|rest| rest.split('"').next());
    values.filter_map(|value| value.parse().ok()).collect()
}

/// Returns the size of the smallest text in pixels, in the narrowest window.
fn smallest_text(svg: &str) -> f64 {
    let sizes = attribute(svg, "font-size");
    let smallest = sizes.into_iter().fold(f64::INFINITY, f64::min);
    smallest * SHOWN_LEAST / attribute(svg, "width")[0]
}

#[test]
fn texts_are_large_enough_in_a_narrow_window() {
    for figure in figures() {
        for svg in [svg(&figure), svg_file(&figure)].map(|svg| svg.expect("it has panels")) {
            assert!(smallest_text(&svg) >= PIXELS_LEAST, "{}: {svg}", smallest_text(&svg));
        }
    }
    let small = "<svg width=\"680\" font-size=\"12\"></svg>";
    assert!(smallest_text(small) < PIXELS_LEAST, "a bad sample is seen");
}

#[test]
fn texts_lie_within_the_picture_and_beside_each_other() {
    for figure in figures() {
        let svg = svg_file(&figure).expect("it has panels");
        let mut ends: Vec<(f64, f64, f64)> = Vec::new();
        for text in svg.split("<text ").skip(1) {
            let text = &format!(" {text}");
            let words = text.split_once('>').expect("a tag").1.split('<').next().unwrap_or("");
            let words = words.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
            let (x, y) = (attribute(text, "x")[0], attribute(text, "y")[0]);
            let width = width_of(&words, TEXT);
            let left = match text {
                text if text.contains("\"middle\"") => x - width / 2.0,
                text if text.contains("\"end\"") => x - width,
                _ => x,
            };
            assert!(left >= 0.0 && left + width <= WIDTH, "{words} is cut: {svg}");
            let meets =
                |(from, to, at): &(f64, f64, f64)| *at == y && left < *to && *from < left + width;
            assert!(!ends.iter().any(meets), "{words} meets another text: {svg}");
            ends.push((left, left + width, y));
        }
    }
}

#[test]
fn a_bar_is_drawn_on_an_even_axis_alone() {
    let boxes = |scale| {
        let svg = svg(&figure(Mark::Bars, scale, 1, 1, true)).expect("it has panels");
        svg.lines().filter(|line| line.contains("class=\"c0\"") && line.contains('H')).count()
    };
    // The first box is the legend's.
    assert_eq!((boxes(AxisScale::Linear), boxes(AxisScale::Log)), (2, 1));
}

#[test]
fn a_file_has_both_modes_and_no_other_colours() {
    let file = svg_file(&figure(Mark::Bars, AxisScale::Linear, 2, 3, true)).expect("panels");
    assert!(file.contains("@media(prefers-color-scheme:dark)"), "{file}");
    let (head, body) = file.split_once("</style>").expect("a style sheet");
    assert!(body.contains("class=\"paper\"") && !body.contains('#'), "{body}");
    let known: Vec<&str> = palette::all().flat_map(|colour| [colour.light, colour.dark]).collect();
    let used = head.split('#').skip(1).map(|rest| format!("#{}", &rest[..6]));
    used.for_each(|colour| assert!(known.contains(&colour.as_str()), "{colour}"));
    let page = svg(&figure(Mark::Lines, AxisScale::Linear, 2, 3, false)).expect("panels");
    assert!(!page.contains("<style") && !page.contains("<rect"), "the page has them: {page}");
}

#[test]
fn names_that_are_drawn_together_look_different() {
    let looks: Vec<String> = (0..9)
        .map(|name| {
            let mut drawing = Drawing::default();
            Look::of(name).line(&mut drawing, &[(0.0, 0.0), (9.0, 9.0)]);
            Look::of(name).marks(&mut drawing, &[(5.0, 5.0)]);
            drawing.svg((0.0, 10.0), 10.0, TEXT, &Standing::OnPage, "")
        })
        .collect();
    let different: std::collections::BTreeSet<&String> = looks.iter().collect();
    assert_eq!(different.len(), looks.len());
}
