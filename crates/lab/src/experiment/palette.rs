//! The colours of all pages and pictures, in a light and a dark mode.
//! ```text
//! texts    on grounds and, the ink alone, on boxes     4.5 : 1 at least (WCAG 1.4.3)
//! shapes   curves, axes, frames on the paper           3 : 1 at least (WCAG 1.4.11)
//! ```
//! Invariant: pages and pictures use no other colours; the tests measure the contrasts.

/// A colour with a light and a dark form, between which the reader's system chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour {
    /// The name of its variable in style sheets.
    pub name: &'static str,
    /// The form in light mode.
    pub light: &'static str,
    /// The form in dark mode.
    pub dark: &'static str,
}

const fn colour(name: &'static str, light: &'static str, dark: &'static str) -> Colour {
    Colour { name, light, dark }
}

/// The backgrounds of texts outside of boxes.
pub const GROUNDS: [Colour; 2] = [PAPER, colour("field", "#f3f5f7", "#1a2028")];
/// The background of pages and pictures.
pub const PAPER: Colour = colour("paper", "#ffffff", "#0d1117");

/// The colours of texts.
pub const TEXTS: [Colour; 6] = [
    INK,
    QUIET,
    colour("link", "#0061a8", "#6cb6ff"),
    colour("good", "#00694c", "#4cc9a0"),
    colour("bad", "#a83c00", "#ff9e64"),
    colour("mark", "#a00018", "#ff8f9c"),
];
/// The colour of most texts.
pub const INK: Colour = colour("ink", "#1f2328", "#e6edf3");
/// The colour of secondary texts.
pub const QUIET: Colour = colour("quiet", "#59626c", "#9aa5b1");

/// The colour of lines that structure a page and carry no meaning.
pub const GRID: Colour = colour("grid", "#d5dae0", "#30363d");
/// The colour of axes and of frames of boxes.
pub const AXIS: Colour = colour("axis", "#6e7781", "#848d97");

/// The colours of curves and bars: those of Okabe and Ito, which colour-blind readers can
/// distinguish. Each is made darker or lighter until it has enough contrast with the paper.
pub const CURVES: [Colour; 7] = [
    colour("c0", "#0072b2", "#4aa8e8"),
    colour("c1", "#d55e00", "#f07f2e"),
    colour("c2", "#008a65", "#14b88a"),
    colour("c3", "#b85c94", "#e08cbb"),
    colour("c4", "#2f95c8", "#8fd3ff"),
    colour("c5", "#a67400", "#e6b422"),
    colour("c6", "#1f2328", "#e6edf3"),
];

/// The colours of boxes of runs, from the newest level to the oldest; they repeat.
pub const LEVELS: [Colour; 6] = [
    colour("level0", "#f4a261", "#7d4a20"),
    colour("level1", "#e9c46a", "#675517"),
    colour("level2", "#a7c957", "#45631f"),
    colour("level3", "#6fb98f", "#245f48"),
    colour("level4", "#5fa8d3", "#275a80"),
    colour("level5", "#a3adf2", "#484f99"),
];
/// The colours of boxes of a filter's base and overlay, and of digits.
pub const BOXES: [Colour; 4] = [
    colour("base", "#c3cad4", "#454d5a"),
    colour("overlay", "#e3b7c4", "#70435a"),
    colour("same", "#d3e8cb", "#2a4a2a"),
    colour("counts", "#f7c6cd", "#6b2a36"),
];

/// The colours of levels on a terminal, whose background is unknown: equally far from white and
/// black.
pub const TERMINAL: [&str; 6] = ["#ae6318", "#92700f", "#4f822b", "#118468", "#287ab6", "#6b68d8"];

/// Returns all colours except those of terminals.
pub fn all() -> impl Iterator<Item = Colour> {
    let lines = [GRID, AXIS];
    GROUNDS.into_iter().chain(TEXTS).chain(lines).chain(CURVES).chain(LEVELS).chain(BOXES)
}

/// Returns a style sheet with a variable for each colour, for pages: `var(--ink)`.
pub fn variables() -> String {
    let of = |form: fn(&Colour) -> &'static str| {
        let set = all().map(|colour| format!("--{}:{};", colour.name, form(&colour)));
        set.collect::<String>()
    };
    format!(
        ":root{{color-scheme:light dark;{}}}\n@media(prefers-color-scheme:dark){{:root{{{}}}}}\n",
        of(|colour| colour.light),
        of(|colour| colour.dark)
    )
}

/// Returns a style sheet of rules (selector, property, colour), for pictures. Programs that draw
/// SVG know classes, but few know variables. Those that know no modes draw the light one.
pub fn rules(rules: impl Iterator<Item = (String, &'static str, Colour)> + Clone) -> String {
    let of = |form: fn(&Colour) -> &'static str| {
        let rules = rules.clone();
        let set = rules.map(|(on, what, colour)| format!("{on}{{{what}:{}}}", form(&colour)));
        set.collect::<String>()
    };
    format!(
        "{}@media(prefers-color-scheme:dark){{{}}}",
        of(|colour| colour.light),
        of(|colour| colour.dark)
    )
}

#[cfg(test)]
mod tests;
