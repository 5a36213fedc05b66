//! Writes SVG.
//!
//! Invariant: colours are classes of the style sheet, so a picture works in both modes.

use std::fmt::Write as _;

/// A position in a picture: from the left, from the top.
pub(crate) type Spot = (f64, f64);

/// The area of a panel's points.
pub(crate) struct Area {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl Area {
    /// Returns the position at these shares of width and height, from the lower left corner.
    pub(crate) fn at(&self, across: f64, up: f64) -> Spot {
        (self.left + self.width * across, self.bottom() - self.height * up)
    }

    pub(crate) fn bottom(&self) -> f64 {
        self.top + self.height
    }
}

/// The part of a text that is at its position.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// Where a picture's colours come from.
pub(crate) enum Standing<'a> {
    /// The page that contains the picture.
    OnPage,
    /// A style sheet of the picture's own.
    Alone(&'a str),
}

/// Why writing into a string cannot fail.
const TAKES_ALL: &str = "a string takes everything";

/// The shapes drawn so far.
#[derive(Default)]
pub(crate) struct Drawing {
    body: String,
}

impl Drawing {
    /// Returns the picture, from `left` to `right` and down to `bottom`.
    pub(crate) fn svg(
        self,
        (left, right): (f64, f64),
        bottom: f64,
        text: f64,
        standing: &Standing<'_>,
        title: &str,
    ) -> String {
        let (width, height, left) = (number(right - left), number(bottom), number(left));
        let (title, body) = (escaped(title), self.body);
        let ground = match standing {
            Standing::OnPage => String::new(),
            Standing::Alone(style) => format!(
                "<style>:root{{color-scheme:light dark}}{style}</style>\n\
                 <rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n"
            ),
        };
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" role=\"img\" width=\"{width}\" \
             height=\"{height}\" viewBox=\"{left} 0 {width} {height}\" font-family=\"sans-serif\" \
             font-size=\"{text}\">\n<title>{title}</title>\n{ground}{body}</svg>\n"
        )
    }

    /// Draws a text, unless it is empty.
    pub(crate) fn words(&mut self, at: Spot, anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        self.text(at, anchor, text);
    }

    /// Draws the name of a panel.
    pub(crate) fn caption(&mut self, at: Spot, text: &str) {
        self.text(at, " font-weight=\"bold\"", text);
    }

    /// Draws the title of the picture.
    pub(crate) fn title(&mut self, at: Spot, text: &str) {
        self.text(at, " font-weight=\"bold\" font-size=\"15\"", text);
    }

    fn text(&mut self, (x, y): Spot, more: &str, text: &str) {
        if !text.is_empty() {
            let (x, y, text) = (number(x), number(y), escaped(text));
            writeln!(self.body, "<text x=\"{x}\" y=\"{y}\"{more}>{text}</text>").expect(TAKES_ALL);
        }
    }

    /// Draws straight lines of one class as one shape.
    pub(crate) fn lines(&mut self, class: &str, lines: impl Iterator<Item = (Spot, Spot)>) {
        let lines: Vec<[Spot; 2]> = lines.map(|(from, to)| [from, to]).collect();
        let path: String = lines.iter().map(|line| path_of(line)).collect();
        self.path(class, "", &path);
    }

    /// Draws a shape. `more`: further attributes.
    pub(crate) fn path(&mut self, class: &str, more: &str, path: &str) {
        if !path.is_empty() {
            writeln!(self.body, "<path class=\"{class}\"{more} d=\"{path}\"/>").expect(TAKES_ALL);
        }
    }
}

/// Returns the path from position to position.
pub(crate) fn path_of(spots: &[Spot]) -> String {
    let steps = spots.iter().enumerate().map(|(place, (x, y))| {
        let letter = if place == 0 { 'M' } else { 'L' };
        format!("{letter}{} {}", number(*x), number(*y))
    });
    steps.collect()
}

/// Formats a number in tenths, as short as possible.
pub(crate) fn number(number: f64) -> String {
    let text = format!("{number:.1}");
    text.strip_suffix(".0").map(str::to_string).unwrap_or(text)
}

/// Escapes text for SVG and HTML.
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            letter => safe.push(letter),
        }
    }
    safe
}
