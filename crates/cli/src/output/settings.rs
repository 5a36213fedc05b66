//! The settings of each measured store in one line.
//! ```text
//! 4 KiB, no compression, direct
//! 4 KiB, lz4, direct              -->   4 KiB, no compression | lz4, direct
//! ```
//! Invariant: every setting of a measurement is shown.

/// Returns a line for each store: its name, and its settings in all measurements. Requires: each
/// measurement has one report of each store, in the same order.
pub(crate) fn settings_lines(stores: usize, reports: &[(String, &str)]) -> String {
    let line = |store: usize| {
        let own = || reports.iter().skip(store).step_by(stores);
        let (name, _) = own().next()?;
        Some(format!("{name}: {}\n", merge_texts(own().map(|(_, settings)| *settings))))
    };
    (0..stores).filter_map(line).collect()
}

/// Merges the parts of texts; parts that differ are shown side by side.
fn merge_texts<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    let mut merged: Vec<Vec<&str>> = Vec::new();
    for text in texts {
        for (place, part) in text.split(", ").enumerate() {
            if place == merged.len() {
                merged.push(Vec::new());
            }
            if !merged[place].contains(&part) {
                merged[place].push(part);
            }
        }
    }
    merged.iter().map(|parts| parts.join(" | ")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_between_measurements_is_told_beside_each_other() {
        let text = |packing: &str| format!("4 KiB, {packing}, direct");
        let (none, lz4) = (text("no compression"), text("lz4"));
        let report = |name: &str, settings| (name.to_string(), settings);
        let reports = [
            report("a", none.as_str()),
            report("b", "a tree"),
            report("a", lz4.as_str()),
            report("b", "a tree"),
            report("a", none.as_str()),
            report("b", "a tree"),
        ];
        let expected = "a: 4 KiB, no compression | lz4, direct\nb: a tree\n";
        assert_eq!(settings_lines(2, &reports), expected);
        assert_eq!(settings_lines(2, &[]), "");
    }
}
