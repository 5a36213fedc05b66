//! The interval that contains the true value of a measurement with near certainty.
//! ```text
//! a time       rounds that take turns         the n-th round from either end: of seven the first,
//!                                             of 21 the fifth; they hold the median 98 times of
//!                                             100, or more often
//! its ratio    both in one record             the same of the ratios of rounds
//! a count      so many in so many questions   95 %, as of Poisson's law
//! NAME_interval                               what the command says
//! others       bits, runs, bytes              the value itself
//! ```
//! Invariant: the measured value lies in its interval.

use crate::experiment::rows::Row;

/// A value of a row, and its interval.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Measured {
    pub(crate) value: f64,
    pub(crate) interval: [f64; 2],
    /// False if it is a time whose rounds were not recorded, so that the spread is unknown.
    pub(crate) is_known: bool,
    /// The record with the value, and the rounds.
    pub(crate) rounds: Option<(u64, Vec<f64>)>,
}

/// The field of a row with the number of its record.
pub(crate) const RECORD: &str = "record";

/// Fields that count events, given per question.
const COUNTS: [&str; 4] =
    ["false_positive_rate", "blocks_read_per_op", "disk_reads_per_op", "needless_runs_per_op"];

/// Parts of the names of times, and of values derived from times.
const TIMES: [&str; 5] = ["ns_per_", "_ns", "ops_per_s", "seconds", "times_as_fast"];

/// Returns a field of a row with its interval. None: there is no such field, or it is no number.
pub(crate) fn measured(row: &Row, name: &str) -> Option<Measured> {
    let value = row.number(name)?;
    let exact = Measured { value, interval: [value; 2], is_known: true, rounds: None };
    let around = name.rsplit_once('.').map_or("", |(around, _)| around);
    let beside = |own: &str| match around {
        "" => own.to_string(),
        around => format!("{around}.{own}"),
    };
    let own = name.rsplit('.').next().unwrap_or(name);
    let of_share = (own == "false_positive_rate").then(|| beside("interval_95"));
    for interval in [Some(format!("{name}_interval")), of_share].into_iter().flatten() {
        let ends = [0, 1].map(|end| row.number(&format!("{interval}.{end}")));
        if let [Some(low), Some(high)] = ends {
            return Some(Measured { interval: [low.min(value), high.max(value)], ..exact });
        }
    }
    // For a filter alone, rates are by kind of question, and each kind has as many questions.
    let ops = match around {
        "false_positive_rate" => row.number("queries"),
        _ if COUNTS.contains(&own) => {
            // Costs by level are per get.
            row.number(&beside("ops")).or_else(|| row.number(&beside("gets")))
        }
        _ => None,
    };
    if let Some(ops) = ops {
        return Some(Measured { interval: poisson(value, ops), ..exact });
    }
    if !TIMES.iter().any(|word| name.contains(word)) {
        return Some(exact);
    }
    let rounds = rounds_of(row, name, value);
    if rounds.is_empty() {
        return Some(Measured { is_known: false, ..exact });
    }
    let (low, high) = ends_of(rounds.iter().copied());
    let record = row.number(RECORD).unwrap_or(0.0) as u64;
    let interval = [low.min(value), high.max(value)];
    Some(Measured { interval, rounds: Some((record, rounds)), ..exact })
}

/// Returns the rounds of a time or a speed; none if they were not recorded.
fn rounds_of(row: &Row, name: &str, value: f64) -> Vec<f64> {
    let numbers = |name: String| -> Vec<f64> {
        (0..).map_while(|nth| row.number(&format!("{name}.{nth}"))).collect()
    };
    let Some(around) = name.strip_suffix("ops_per_s") else {
        return numbers(format!("{name}_rounds"));
    };
    // Some commands record the speed of each round, others the time.
    let speeds = ["of_rounds", "rounds"].map(|of| numbers(format!("{name}_{of}")));
    if let Some(speeds) = speeds.into_iter().find(|speeds| !speeds.is_empty()) {
        return speeds;
    }
    let time = format!("{around}ns_per_op");
    let middle = row.number(&time).unwrap_or(0.0);
    let times = numbers(format!("{time}_rounds"));
    times.into_iter().map(|round| value * middle / round).collect()
}

/// Returns the ratio of two values with its interval. None: both are zero.
pub(crate) fn ratio(one: &Measured, other: &Measured) -> Option<Measured> {
    let value = one.value / other.value;
    let is_known = one.is_known && other.is_known;
    let interval = match (&one.rounds, &other.rounds) {
        (Some((record, times)), Some((same, others)))
            if record == same && times.len() == others.len() =>
        {
            let (low, high) = ends_of(times.iter().zip(others).map(|(one, other)| one / other));
            [low.min(value), high.max(value)]
        }
        _ => [one.interval[0] / other.interval[1], one.interval[1] / other.interval[0]],
    };
    let is_ratio = other.value != 0.0 || one.value != 0.0;
    is_ratio.then_some(Measured { value, interval, is_known, rounds: None })
}

/// Returns the 95 % interval of a count per question, by the square root of Poisson counts. The
/// count is `ops` times `value`.
fn poisson(value: f64, ops: f64) -> [f64; 2] {
    const HALF_WIDTH: f64 = 0.98; // of a 95 % interval, on the scale of roots
    if ops <= 0.0 {
        return [value; 2];
    }
    let count = value * ops;
    let low = (count.sqrt() - HALF_WIDTH).max(0.0).powi(2);
    let high = ((count + 1.0).sqrt() + HALF_WIDTH).powi(2);
    [low / ops, high / ops]
}

/// Returns two of the numbers between which the true median lies with a probability of 98 % or
/// more. Each number is above it with probability 1/2. Of fewer than seven numbers, these are the
/// least and the greatest. Requires: at least one number.
fn ends_of(numbers: impl Iterator<Item = f64>) -> (f64, f64) {
    let mut numbers: Vec<f64> = numbers.collect();
    numbers.sort_by(f64::total_cmp);
    let left_out = left_out(numbers.len());
    (numbers[left_out], numbers[numbers.len() - 1 - left_out])
}

/// Returns how many of the least and of the greatest numbers can be left out.
fn left_out(count: usize) -> usize {
    /// The most probability that the median is beyond one end.
    const CHANCE_MAX: f64 = 0.01;
    let (mut chance, mut of_one) = (0.0, 0.5f64.powi(count as i32));
    for heads in 0..count {
        chance += of_one;
        if chance > CHANCE_MAX {
            return heads.saturating_sub(1);
        }
        of_one *= (count - heads) as f64 / (heads + 1) as f64;
    }
    0
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::experiment::rows::Scalar;

    fn row(fields: &[(&str, f64)]) -> Row {
        let fields = fields.iter().map(|(name, value)| (name.to_string(), Scalar::Number(*value)));
        Row(BTreeMap::from_iter(fields))
    }

    #[test]
    fn counts_have_the_intervals_of_the_tables() {
        let of = |rate: f64, ops: f64| {
            let row = row(&[("miss.false_positive_rate", rate), ("miss.ops", ops)]);
            measured(&row, "miss.false_positive_rate").expect("is there").interval.map(|e| e * ops)
        };
        // Garwood's exact intervals: of count 0: 0 to 3.69; of 10: 4.80 to 18.39; of 100: 81.4 to
        // 121.6.
        let near = |found: [f64; 2], exact: [f64; 2]| {
            found.iter().zip(exact).all(|(found, exact)| (found - exact).abs() < 0.4)
        };
        assert!(near(of(0.0, 1000.0), [0.0, 3.69]), "{:?}", of(0.0, 1000.0));
        assert!(near(of(0.01, 1000.0), [4.80, 18.39]), "{:?}", of(0.01, 1000.0));
        assert!(near(of(0.1, 1000.0), [81.4, 121.6]), "{:?}", of(0.1, 1000.0));
    }

    #[test]
    fn of_many_rounds_the_outermost_are_left_out() {
        // Of 21 coins, four or fewer are heads 36 times in 10,000, five or fewer 133 times.
        let expected = [(1, 0), (2, 0), (6, 0), (7, 0), (10, 0), (11, 1), (21, 4), (31, 8)];
        for (rounds, out) in expected {
            assert_eq!(left_out(rounds), out, "{rounds} rounds");
        }
        assert_eq!(ends_of((1..=21).map(f64::from)), (5.0, 17.0));
        assert_eq!(ends_of([3.0, 1.0, 2.0].into_iter()), (1.0, 3.0));
    }

    #[test]
    fn counts_by_level_are_counts_of_gets() {
        let row = row(&[("needless_runs_per_op", 0.5), ("gets", 1000.0)]);
        let found = measured(&row, "needless_runs_per_op").expect("is there");
        assert!(found.is_known && found.interval[0] > 0.4 && found.interval[1] < 0.6);
        let fields = [("ops_per_s", 5.0), ("ops_per_s_of_rounds.0", 4.0)];
        assert_eq!(measured(&self::row(&fields), "ops_per_s").expect("is there").interval[0], 4.0);
    }

    #[test]
    fn ratios_of_one_record_are_taken_round_by_round() {
        let times = |record: f64, rounds: [f64; 3]| {
            let names = ["ns_per_op_rounds.0", "ns_per_op_rounds.1", "ns_per_op_rounds.2"];
            let mut fields = vec![("ns_per_op", rounds[1]), (RECORD, record)];
            fields.extend(names.into_iter().zip(rounds));
            measured(&row(&fields), "ns_per_op").expect("is there")
        };
        let (slow, fast) = (times(1.0, [100.0, 200.0, 400.0]), times(1.0, [52.0, 100.0, 199.0]));
        assert_eq!(slow.interval, [100.0, 400.0]);
        let paired = ratio(&slow, &fast).expect("a ratio").interval;
        assert!(paired[0] > 1.9 && paired[1] < 2.1, "{paired:?}: the machine was slow to both");
        let apart = ratio(&slow, &times(2.0, [52.0, 100.0, 199.0])).expect("a ratio").interval;
        assert!(apart[0] < 0.6 && apart[1] > 7.0, "{apart:?}");
        let alone = measured(&row(&[("seek.ns_per_op", 5.0)]), "seek.ns_per_op").expect("is there");
        assert!(!alone.is_known, "a time without rounds");
        let bits = measured(&row(&[("bits", 5.0)]), "bits").expect("is there");
        assert!(bits.is_known && bits.interval == [5.0; 2]);
        assert_eq!(measured(&row(&[]), "bits"), None);
    }

    #[test]
    fn what_a_command_says_of_its_own_counts_is_taken() {
        let fields = [("rate", 0.5), ("rate_interval.0", 0.4), ("rate_interval.1", 0.7)];
        assert_eq!(measured(&row(&fields), "rate").expect("is there").interval, [0.4, 0.7]);
        let speed = [
            ("ops_per_s", 10.0),
            ("ns_per_op", 4.0),
            ("ns_per_op_rounds.0", 4.0),
            ("ns_per_op_rounds.1", 5.0),
        ];
        assert_eq!(measured(&row(&speed), "ops_per_s").expect("is there").interval, [8.0, 10.0]);
        let own = [("ops_per_s", 10.0), ("ops_per_s_rounds.0", 9.0), ("ops_per_s_rounds.1", 12.0)];
        assert_eq!(measured(&row(&own), "ops_per_s").expect("is there").interval, [9.0, 12.0]);
        let speed =
            [("ops_per_s", 10.0), ("ops_per_s_of_rounds.0", 9.0), ("ops_per_s_of_rounds.1", 12.0)];
        assert_eq!(measured(&row(&speed), "ops_per_s").expect("is there").interval, [9.0, 12.0]);
    }
}
