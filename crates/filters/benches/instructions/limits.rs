//! Limits of instruction counts: a text file, and how a measurement compares with it.
//! ```text
//! [x86_64-v3, rustc 1.95.0]          a kind of processor; the compiler that the counts are from
//! grf-uniform-point-miss 301.5       instructions per operation
//! ```
//! Invariant: a measurement is fine only if each of its operations has a limit, each limit its
//! operation, and no count is above its limit by more than the tolerance.

use std::fmt;

/// How far above its limit a count may be: a change elsewhere can move what the compiler puts
/// inline.
const TOLERANCE: f64 = 0.03;

/// Counts for one kind of processor, by one compiler.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Section {
    pub(crate) processor: String,
    pub(crate) compiler: String,
    /// Operations and their instructions.
    pub(crate) rows: Vec<(String, f64)>,
}

/// All sections of the file; one for each kind of processor.
#[derive(Debug, PartialEq)]
pub(crate) struct Limits(Vec<Section>);

/// A measurement beside its limits.
pub(crate) struct Verdict {
    pub(crate) table: String,
    /// One line each; none: all is well.
    pub(crate) problems: Vec<String>,
}

impl Limits {
    /// Reads the text of a limits file. The error names the line.
    pub(crate) fn parse(text: &str) -> Result<Limits, String> {
        let mut sections: Vec<Section> = Vec::new();
        for (line, number) in text.lines().zip(1..) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = || format!("line {number}: '{line}' is no limit");
            if let Some(head) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                let (processor, compiler) = head.split_once(", ").ok_or_else(wrong)?;
                let [processor, compiler] = [processor, compiler].map(str::to_owned);
                sections.push(Section { processor, compiler, rows: Vec::new() });
            } else {
                let (name, limit) = line.split_once(' ').ok_or_else(wrong)?;
                let limit = limit.trim().parse().ok().filter(|&limit: &f64| limit > 0.0);
                let section = sections.last_mut().ok_or_else(wrong)?;
                section.rows.push((name.to_owned(), limit.ok_or_else(wrong)?));
            }
        }
        Ok(Limits(sections))
    }

    /// Puts `measured` in the place of the limits for its processor.
    pub(crate) fn replace(&mut self, measured: Section) {
        match self.0.iter_mut().find(|section| section.processor == measured.processor) {
            Some(section) => *section = measured,
            None => self.0.push(measured),
        }
    }

    /// Compares with the limits for the processor.
    pub(crate) fn compare(&self, measured: &Section) -> Verdict {
        let limits = self.0.iter().find(|section| section.processor == measured.processor);
        let mut verdict = Verdict { table: table(limits, measured), problems: Vec::new() };
        let Some(limits) = limits else {
            verdict.problems.push(format!("there are no limits for {}", measured.processor));
            return verdict;
        };
        for (name, count) in &measured.rows {
            match limits.count_of(name) {
                None => verdict.problems.push(format!("{name} has no limit")),
                Some(limit) if *count > limit * (1.0 + TOLERANCE) => verdict.problems.push(
                    format!("{name} needs {count:.1} instructions, {}", above(*count, limit)),
                ),
                Some(_) => {}
            }
        }
        let stale = limits.rows.iter().filter(|(name, _)| measured.count_of(name).is_none());
        verdict.problems.extend(stale.map(|(name, _)| format!("{name} has a limit, but is gone")));
        if limits.compiler != measured.compiler && !verdict.problems.is_empty() {
            verdict.problems.push(format!(
                "(The limits are from {}; this is {}, which may be the reason.)",
                limits.compiler, measured.compiler
            ));
        }
        verdict
    }
}

impl Section {
    fn count_of(&self, name: &str) -> Option<f64> {
        self.rows.iter().find(|(other, _)| other == name).map(|(_, count)| *count)
    }
}

/// How far `count` is above `limit`, to a tenth of a percent.
fn percent_above(count: f64, limit: f64) -> f64 {
    let tenths = (1000.0 * (count / limit - 1.0)).round();
    if tenths == 0.0 { 0.0 } else { tenths / 10.0 }
}

fn above(count: f64, limit: f64) -> String {
    let (percent, allowed) = (percent_above(count, limit), 100.0 * TOLERANCE);
    format!("{percent:.1} % above its limit of {limit:.1} ({allowed:.0} % are allowed)")
}

fn table(limits: Option<&Section>, measured: &Section) -> String {
    let Section { processor, compiler, rows } = measured;
    let mut table = format!("instructions per operation ({processor}, {compiler}):\n");
    for (name, count) in rows {
        let limit = limits.and_then(|limits| limits.count_of(name));
        let beside = limit.map_or("no limit".to_owned(), |limit| {
            let percent = percent_above(*count, limit);
            let gained = *count < limit * (1.0 - TOLERANCE);
            let advice = if gained { "   fewer: --write-limits keeps the gain" } else { "" };
            format!("limit {limit:>9.1}{percent:>+8.1} %{advice}")
        });
        table.push_str(&format!("  {name:<26}{count:>9.1}   {beside}\n"));
    }
    table
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "# Instructions per operation. A change that needs more fails, beyond a tolerance."
        )?;
        writeln!(f, "# Each section: a kind of processor, and the compiler. Written by")?;
        writeln!(f, "# .ci/instructions --write-limits")?;
        for Section { processor, compiler, rows } in &self.0 {
            writeln!(f, "\n[{processor}, {compiler}]")?;
            rows.iter().try_for_each(|(name, count)| writeln!(f, "{name:<26}{count:>9.1}"))?;
        }
        Ok(())
    }
}
