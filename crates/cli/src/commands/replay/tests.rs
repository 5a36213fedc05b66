//! Tests of the page's style that need no browser.

use std::collections::BTreeSet;

use super::*;

/// Returns the style sheet of the page.
fn style() -> &'static str {
    let behind = PAGE.split_once("<style>").expect("a style sheet").1;
    behind.split_once("</style>").expect("its end").0
}

/// Returns the variables that the style sheet uses for a property.
fn used(property: &str) -> BTreeSet<&'static str> {
    let ends = style().split(&[';', '{', '}'][..]).map(str::trim);
    let values = ends.filter_map(|rule| rule.split_once(':')).filter(|(name, _)| *name == property);
    let names = values.filter_map(|(_, value)| value.split_once("var(--"));
    names.filter_map(|(_, rest)| rest.split(')').next()).collect()
}

#[test]
fn the_page_has_the_colours_whose_contrasts_are_measured() {
    let names = |colours: &[palette::Colour]| -> BTreeSet<&'static str> {
        colours.iter().map(|colour| colour.name).collect()
    };
    let texts = names(&palette::TEXTS);
    assert!(used("color").is_subset(&texts) && used("color").len() > 1, "{:?}", used("color"));
    let grounds = names(&[&palette::GROUNDS[..], &palette::BOXES].concat());
    assert!(used("background").is_subset(&grounds), "{:?}", used("background"));
    let all = palette::all().map(|colour| colour.name).collect::<BTreeSet<_>>();
    let variables = style().split("var(--").skip(1).filter_map(|rest| rest.split(')').next());
    variables.for_each(|name| assert!(all.contains(name), "{name}"));
    // A literal colour would have only one mode.
    let written = style().split('#').skip(1).filter(|rest| {
        let digits = rest.chars().take_while(char::is_ascii_hexdigit).count();
        digits >= 3 && rest[digits..].starts_with([';', ' ', ')'])
    });
    assert_eq!(written.count(), 0);
    assert!(!style().contains("rgb"), "{}", style());
}

#[test]
fn a_box_with_a_ground_of_its_own_has_the_ink_on_it() {
    for class in [".run {", ".digit {"] {
        let rule = style().split_once(class).expect("a rule").1.split('}').next();
        assert!(rule.is_some_and(|rule| rule.contains("color: var(--ink)")), "{class}");
    }
}
