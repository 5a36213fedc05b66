//! Tables of text with aligned columns, and numbers for readers.

pub(crate) use trommel_lab::experiment::whole;

/// Rows of cells; the first row is the heading. The first `left_columns` columns are aligned left,
/// the others right.
pub(crate) struct TextTable {
    left_columns: usize,
    rows: Vec<Vec<String>>,
}

impl TextTable {
    /// Creates a table with a heading; the first `left_columns` columns hold words.
    pub(crate) fn new(left_columns: usize, heading: &[&str]) -> Self {
        let heading = heading.iter().map(|cell| cell.to_string()).collect();
        TextTable { left_columns, rows: vec![heading] }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Returns the lines, indented by two spaces, with a rule under the heading.
    pub(crate) fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for (place, row) in self.rows.iter().enumerate() {
            text.push_str(&self.line(row, &widths));
            if place == 0 {
                let rules: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
                text.push_str(&self.line(&rules, &widths));
            }
        }
        text
    }

    /// Returns the lines without the heading.
    pub(crate) fn render_body(&self) -> String {
        self.render().lines().skip(2).map(|line| format!("{line}\n")).collect()
    }

    fn line(&self, row: &[String], widths: &[usize]) -> String {
        let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| {
            let padding = " ".repeat(width - cell.chars().count());
            if column < self.left_columns {
                format!("{cell}{padding}")
            } else {
                format!("{padding}{cell}")
            }
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        format!("  {}\n", line.trim_end())
    }
}

/// Formats a number with its noun, as in "1 key", "2 keys".
pub(crate) fn counted(count: u64, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", whole(count))
}

/// Formats bytes in a fitting unit.
pub(crate) fn bytes(count: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let fitting = units.into_iter().find(|(shift, _)| count >> shift > 0);
    fitting.map_or(format!("{count} B"), |(shift, unit)| {
        format!("{:.1} {unit}", count as f64 / (1u64 << shift) as f64)
    })
}

/// Formats nanoseconds in a fitting unit.
pub(crate) fn nanoseconds(count: f64) -> String {
    match count {
        count if count < 1e3 => format!("{count:.0} ns"),
        count if count < 1e6 => format!("{:.2} µs", count / 1e3),
        count => format!("{:.2} ms", count / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = TextTable::new(1, &["guard", "µs"]);
        table.row(vec!["none".into(), "12.5".into()]);
        assert_eq!(table.render(), "  guard    µs\n  -----  ----\n  none   12.5\n");
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(
            (whole(0), whole(999), whole(1_234_567)),
            ("0".into(), "999".into(), "1,234,567".into())
        );
        assert_eq!(
            (bytes(5), bytes(1536), bytes(3 << 30)),
            ("5 B".into(), "1.5 KiB".into(), "3.0 GiB".into())
        );
        assert_eq!((nanoseconds(12.4), nanoseconds(1500.0)), ("12 ns".into(), "1.50 µs".into()));
        assert_eq!(nanoseconds(2.5e6), "2.50 ms");
        assert_eq!(
            (counted(1, "key"), counted(2000, "key")),
            ("1 key".into(), "2,000 keys".into())
        );
        assert_eq!(counted(0, "run"), "0 runs");
    }
}
