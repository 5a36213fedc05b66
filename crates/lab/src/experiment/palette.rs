//! The colours of all pages and pictures, by day and by night.
//! ```text
//! texts    on grounds and, the ink alone, on boxes     4.5 : 1 at least (WCAG 1.4.3)
//! shapes   curves, axes, frames on the paper           3 : 1 at least (WCAG 1.4.11)
//! ```
//! Invariant: pages and pictures have no other colours; the tests measure these.

/// A colour that a reader's system takes the light or the dark form of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour {
    /// The name of its variable in style sheets.
    pub name: &'static str,
    /// On light paper.
    pub light: &'static str,
    /// On dark paper.
    pub dark: &'static str,
}

const fn colour(name: &'static str, light: &'static str, dark: &'static str) -> Colour {
    Colour { name, light, dark }
}

/// What texts stand on, outside of boxes.
pub const GROUNDS: [Colour; 2] = [PAPER, colour("field", "#f3f5f7", "#1a2028")];
/// What all stands on.
pub const PAPER: Colour = colour("paper", "#ffffff", "#0d1117");

/// Texts.
pub const TEXTS: [Colour; 6] = [
    INK,
    QUIET,
    colour("link", "#0061a8", "#6cb6ff"),
    colour("good", "#00694c", "#4cc9a0"),
    colour("bad", "#a83c00", "#ff9e64"),
    colour("mark", "#a00018", "#ff8f9c"),
];
/// Most texts.
pub const INK: Colour = colour("ink", "#1f2328", "#e6edf3");
/// Texts beside others.
pub const QUIET: Colour = colour("quiet", "#59626c", "#9aa5b1");

/// Lines that order a page; they say nothing by themselves.
pub const GRID: Colour = colour("grid", "#d5dae0", "#30363d");
/// Axes, and frames of boxes.
pub const AXIS: Colour = colour("axis", "#6e7781", "#848d97");

/// Curves and bars: those of Okabe and Ito, which colour-blind readers can tell apart, made darker
/// or lighter until they stand out from the paper.
pub const CURVES: [Colour; 7] = [
    colour("c0", "#0072b2", "#4aa8e8"),
    colour("c1", "#d55e00", "#f07f2e"),
    colour("c2", "#008a65", "#14b88a"),
    colour("c3", "#b85c94", "#e08cbb"),
    colour("c4", "#2f95c8", "#8fd3ff"),
    colour("c5", "#a67400", "#e6b422"),
    colour("c6", "#1f2328", "#e6edf3"),
];

/// Boxes of runs, from the newest level to the oldest, in turns.
pub const LEVELS: [Colour; 6] = [
    colour("level0", "#f4a261", "#7d4a20"),
    colour("level1", "#e9c46a", "#675517"),
    colour("level2", "#a7c957", "#45631f"),
    colour("level3", "#6fb98f", "#245f48"),
    colour("level4", "#5fa8d3", "#275a80"),
    colour("level5", "#a3adf2", "#484f99"),
];
/// Boxes of a filter's halves, and of digits that say something.
pub const BOXES: [Colour; 4] = [
    colour("base", "#c3cad4", "#454d5a"),
    colour("overlay", "#e3b7c4", "#70435a"),
    colour("same", "#d3e8cb", "#2a4a2a"),
    colour("counts", "#f7c6cd", "#6b2a36"),
];

/// Levels on a terminal, whose ground is not known: as far from white as from black.
pub const TERMINAL: [&str; 6] = ["#ae6318", "#92700f", "#4f822b", "#118468", "#287ab6", "#6b68d8"];

/// All of them but those of terminals.
pub fn all() -> impl Iterator<Item = Colour> {
    let lines = [GRID, AXIS];
    GROUNDS.into_iter().chain(TEXTS).chain(lines).chain(CURVES).chain(LEVELS).chain(BOXES)
}

/// A style sheet with a variable for each colour, for pages: `var(--ink)`.
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

/// A style sheet of rules (selector, property, colour), for pictures: programs that draw SVG know
/// classes, but few know variables, and where they know no modes they draw the light one.
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
