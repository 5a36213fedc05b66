//! The search for the setting with which a filter takes the memory that was asked for.
//! ```text
//! asked 14.0   told 14.0 -> takes 12.9   told 15.1 -> takes 14.9   told 14.6 -> takes 13.9   fits
//! ```
//! Filters round: to whole bits of a suffix, to powers of two, to pages. So the setting differs
//! from the memory taken, and filters of equal settings are not comparable.
//! Invariant: every reported size was built. The asked size is tried first, so one that fits costs
//! one build.

/// The relative error that is close enough.
const TOLERANCE: f64 = 0.03;
/// Sizes that differ by less are the same: headers and pages account for it.
const ONE_SIZE: f64 = 0.002;
/// The most builds of a search.
const BUILDS_MAX: usize = 5;
/// The range of settings, in bits per key.
const SETTINGS: [f64; 2] = [1.0, 64.0];
/// The least slope for extrapolation: filters that grow in steps have flat stretches.
const SLOPE_MIN: f64 = 0.25;

/// A setting, and the memory that the filter takes with it, both in bits per key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Fit {
    /// The setting.
    pub(crate) setting: f64,
    /// The memory taken.
    pub(crate) taken: f64,
    /// True if no setting that was tried takes the memory that was asked for, within 3 percent.
    pub(crate) unfit: bool,
}

/// Searches for the setting that takes `asked` bits per key. `build` builds with a setting and
/// returns the bits per key taken. If none fits, returns the closest one below, or else the closest
/// one.
pub(crate) fn search<E>(
    requested: f64,
    mut build: impl FnMut(f64) -> Result<f64, E>,
) -> Result<Fit, E> {
    let mut tried: Vec<Fit> = Vec::with_capacity(BUILDS_MAX);
    let mut next = Some(requested.clamp(SETTINGS[0], SETTINGS[1]));
    while let Some(setting) = next.filter(|_| tried.len() < BUILDS_MAX) {
        let taken = build(setting)?;
        let unfit = !fits(taken, requested);
        tried.push(Fit { setting, taken, unfit });
        if !unfit {
            break;
        }
        next = next_setting(requested, &tried).filter(|_| !is_least(requested, &tried));
    }
    Ok(best(requested, &tried))
}

/// Whether `taken` is close enough to `asked`.
pub(crate) fn fits(taken: f64, requested: f64) -> bool {
    (taken - requested).abs() <= TOLERANCE * requested
}

/// Whether a smaller setting made no difference: the filter has only one size, or reached its
/// least.
fn is_least(requested: f64, tried: &[Fit]) -> bool {
    matches!(tried, [.., a, b] if b.taken > requested && (a.taken - b.taken).abs() <= ONE_SIZE * a.taken)
}

/// Returns the next setting to try. None: it was tried already.
/// Requires: at least one was tried, and none fits.
fn next_setting(requested: f64, tried: &[Fit]) -> Option<f64> {
    let of = |low: bool| tried.iter().filter(move |fit| (fit.taken < requested) == low);
    let below = of(true).max_by(|a, b| a.setting.total_cmp(&b.setting));
    let above = of(false).min_by(|a, b| a.setting.total_cmp(&b.setting));
    let setting = match (below, above) {
        // Steps mislead interpolation, so every second guess bisects.
        (Some(low), Some(high)) if tried.len().is_multiple_of(2) => {
            let slope = (high.taken - low.taken) / (high.setting - low.setting);
            low.setting + (requested - low.taken) / slope
        }
        (Some(low), Some(high)) => f64::midpoint(low.setting, high.setting),
        (Some(end), None) | (None, Some(end)) => {
            let other = tried.iter().rfind(|fit| fit.setting != end.setting);
            let slope = other
                .map_or(1.0, |other| (end.taken - other.taken) / (end.setting - other.setting));
            end.setting + (requested - end.taken) / slope.max(SLOPE_MIN)
        }
        (None, None) => return None,
    };
    let setting = setting.clamp(SETTINGS[0], SETTINGS[1]);
    tried.iter().all(|fit| fit.setting != setting).then_some(setting)
}

/// Returns the best of the settings tried. Requires: at least one was tried.
fn best(requested: f64, tried: &[Fit]) -> Fit {
    let off = |fit: &&Fit| (fit.taken - requested).abs();
    let nearer = |a: &&Fit, b: &&Fit| off(a).total_cmp(&off(b));
    let fitting = tried.iter().find(|fit| !fit.unfit);
    let below = || tried.iter().filter(|fit| fit.taken <= requested).min_by(nearer);
    let best = fitting.or_else(below).or_else(|| tried.iter().min_by(nearer));
    *best.expect("the first setting was tried")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the result, and all settings that were built.
    fn searched(requested: f64, takes: impl Fn(f64) -> f64) -> (Fit, Vec<f64>) {
        let mut built = Vec::new();
        let fit = search(requested, |setting| {
            built.push(setting);
            Ok::<_, ()>(takes(setting))
        });
        (fit.expect("nothing fails"), built)
    }

    #[test]
    fn what_fits_at_once_is_built_once() {
        let (fit, built) = searched(14.0, |setting| setting + 0.4);
        assert_eq!(fit, Fit { setting: 14.0, taken: 14.4, unfit: false });
        assert_eq!(built, [14.0]);
    }

    #[test]
    fn shares_offsets_and_small_steps_are_found() {
        type Law = fn(f64) -> f64;
        let laws: [(&str, Law); 5] = [
            ("a share more", |setting| 1.3 * setting),
            ("a share less", |setting| 0.8 * setting),
            ("so much beside", |setting| setting + 3.0),
            ("a half for some keys", |setting| 5.0 + setting / 2.0),
            ("steps", |setting| 1.1 * (2.0 * setting).floor() / 2.0),
        ];
        for (law, takes) in laws {
            for requested in [10.0, 14.0, 18.0, 22.0] {
                let (fit, built) = searched(requested, takes);
                assert!(
                    !fit.unfit && fits(fit.taken, requested),
                    "{law}, {requested}: {fit:?}, {built:?}"
                );
                assert_eq!(fit.taken, takes(fit.setting), "{law}");
                assert!(built.len() <= BUILDS_MAX, "{law}: {built:?}");
            }
        }
    }

    #[test]
    fn what_is_too_large_in_any_case_is_unfit() {
        let (fit, built) = searched(14.0, |setting| setting.max(18.5));
        assert!(fit.unfit && fit.taken == 18.5, "{fit:?}");
        assert!(built.len() <= BUILDS_MAX, "{built:?}");
        let (fit, built) = searched(8.0, |_| 74.0);
        assert!(fit.unfit && fit.taken == 74.0 && built.len() <= 2, "{fit:?}, {built:?}");
    }

    #[test]
    fn between_steps_the_one_from_below_is_taken() {
        // 8, 12, 16, 20: none is within 3 percent of 14.
        let (fit, built) = searched(14.0, |setting| 4.0 * (setting / 4.0).floor());
        assert_eq!((fit.taken, fit.unfit), (12.0, true), "{built:?}");
        let (fit, built) = searched(14.0, |setting| 4.0 * (setting / 4.0).ceil());
        assert_eq!((fit.taken, fit.unfit), (12.0, true), "{built:?}");
    }

    #[test]
    fn settings_stay_within_what_filters_can_be_told() {
        for takes in [|setting: f64| setting / 1000.0, |setting: f64| setting * 1000.0] {
            let (fit, built) = searched(14.0, takes);
            assert!(fit.unfit && built.iter().all(|setting| (1.0..=64.0).contains(setting)));
        }
    }

    #[test]
    fn what_fails_ends_the_search() {
        assert_eq!(search(14.0, |_| Err("no memory")), Err("no memory"));
    }
}
