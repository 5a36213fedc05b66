//! Reads what a run under callgrind wrote.
//! ```text
//! ob=/the/program        where the next cost lines were spent
//! 12 30                  30 instructions; at some line
//! calls=4 0
//! 12 1000          what the callee spent: it has cost lines of its own, so this one does not count
//! totals: 1130
//! ```
//! What libc spends depends on its version and on the machine, so it is kept apart. Invariant: both
//! sums together are the total that callgrind states.

/// Instructions by where they are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Profile {
    pub(crate) own: u64,
    pub(crate) elsewhere: u64,
}

/// The processor, and each operation's name and how often it was done.
pub(crate) fn parse_names(text: &str) -> Result<(String, Vec<(String, u64)>), String> {
    let mut lines = text.lines();
    let processor = lines.next().ok_or("the program named no processor")?.to_owned();
    let operation = |line: &str| {
        let (name, times) = line.split_once(' ')?;
        let times = times.parse().ok().filter(|&times| times > 0)?;
        Some((name.to_owned(), times))
    };
    let operations: Option<Vec<_>> = lines.map(operation).collect();
    match operations {
        Some(operations) if !operations.is_empty() => Ok((processor, operations)),
        _ => Err(format!("these are no operations with counts: '{text}'")),
    }
}

/// Sums the costs of a profile: `own` if their object file is `program`.
pub(crate) fn parse_profile(text: &str, program: &str) -> Result<Profile, String> {
    let mut profile = Profile { own: 0, elsewhere: 0 };
    let (mut in_program, mut is_callee, mut total) = (false, false, None);
    for line in text.lines() {
        if let Some(object) = line.strip_prefix("ob=") {
            in_program = object == program;
        } else if line.starts_with("calls=") {
            is_callee = true;
        } else if let Some(sum) = line.strip_prefix("totals: ") {
            total = sum.trim().parse().ok();
        } else if line.starts_with(|first: char| first.is_ascii_digit()) {
            // The line after "calls=" says what the callee needed; that is counted where it was
            // spent.
            if !std::mem::take(&mut is_callee) {
                let cost = line.split(' ').nth(1).and_then(|cost| cost.parse::<u64>().ok());
                let cost = cost.ok_or_else(|| format!("callgrind wrote '{line}'"))?;
                *(if in_program { &mut profile.own } else { &mut profile.elsewhere }) += cost;
            }
        }
    }
    if profile.own == 0 || total != Some(profile.own + profile.elsewhere) {
        return Err(format!("callgrind's profile does not add up: {profile:?}, total {total:?}"));
    }
    Ok(profile)
}
