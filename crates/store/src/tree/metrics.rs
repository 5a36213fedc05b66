//! Every number of a store, by name: the one table behind the Prometheus text and the JSON.
//! ```text
//! Stats -> metrics() -> [ memtable_bytes gauge 4096 | writes counter 12 | ... ] -> text, JSON
//! ```
//! Invariant: a name appears once for each value of its label.

use std::fmt::{self, Write as _};

use crate::tree::latency::Latency;
use crate::tree::stats::{QueryStats, Stats};
use MetricKind::{Counter, Gauge};

/// One number of a store.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Metric {
    /// The path of the number in [`Stats`], such as `guard.memory_bytes`.
    pub name: &'static str,
    /// Whether the number only grows.
    pub kind: MetricKind,
    /// The label that tells several numbers of one name apart, such as `("level", "2")`. None:
    /// there is only one.
    pub label: Option<(&'static str, String)>,
    /// The number.
    pub value: MetricValue,
}

/// How a number changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// It only grows while the store is open.
    Counter,
    /// It grows and shrinks.
    Gauge,
}

/// A number, whole or not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MetricValue {
    /// A count, or bytes.
    Whole(u64),
    /// A share, or seconds.
    Real(f64),
}

impl From<u64> for MetricValue {
    fn from(value: u64) -> Self {
        MetricValue::Whole(value)
    }
}

impl From<f64> for MetricValue {
    fn from(value: f64) -> Self {
        MetricValue::Real(value)
    }
}

impl fmt::Display for MetricValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MetricValue::Whole(value) => value.fmt(f),
            MetricValue::Real(value) => value.fmt(f),
        }
    }
}

/// Prometheus names from before there were paths. Dashboards rely on them.
const EXPOSED: [(&str, &str); 16] = [
    ("bytes_written_user", "user_bytes_total"),
    ("bytes_flushed", "flushed_bytes_total"),
    ("bytes_merged", "merged_bytes_total"),
    ("slowdowns.count", "slowdowns_total"),
    ("slowdowns.seconds", "slowdown_seconds_total"),
    ("stops.count", "stops_total"),
    ("stops.seconds", "stop_seconds_total"),
    ("lock_waits.count", "lock_waits_total"),
    ("lock_waits.seconds", "lock_wait_seconds_total"),
    ("guard.memory_bytes", "guard_bytes"),
    ("guard.elastic.tables_by_sub_filters", "elastic_tables"),
    ("guard.elastic.sub_filter_bytes", "elastic_unit_bytes"),
    ("files.max", "files_open_max"),
    ("obsolete.scans", "obsolete_held_by_scans"),
    ("obsolete.pinned_trees", "obsolete_held_by_pinned_trees"),
    ("obsolete.followed_trees", "obsolete_held_by_followed_trees"),
];

impl Metric {
    /// Returns the name for Prometheus, without the prefix `trommel_`.
    fn exposed(&self) -> String {
        if let Some((_, exposed)) = EXPOSED.iter().find(|(name, _)| *name == self.name) {
            return (*exposed).to_owned();
        }
        let path = self.name.strip_prefix("guard.elastic").map(|rest| ["elastic", rest].concat());
        let name = path.unwrap_or_else(|| self.name.to_owned()).replace('.', "_");
        if self.kind == Counter { name + "_total" } else { name }
    }
}

type Row = (MetricKind, &'static str, MetricValue);

/// Makes rows of some fields of a value. A row's name is a prefix and the field's path.
macro_rules! rows {
    ($kind:ident, $prefix:literal, $of:ident, $($field:ident $(. $inner:ident)?),+ $(,)?) => {
        [$((
            $kind,
            concat!($prefix, stringify!($field) $(, ".", stringify!($inner))?),
            $of.$field$(.$inner)?.into(),
        )),+]
    };
}

fn single((kind, name, value): Row) -> Metric {
    Metric { name, kind, label: None, value }
}

fn labelled((kind, name, value): Row, label: &'static str, of: impl ToString) -> Metric {
    Metric { name, kind, label: Some((label, of.to_string())), value }
}

impl Stats {
    /// Returns every number: queries by kind, runs by level, all others once.
    pub fn metrics(&self) -> Vec<Metric> {
        let runs = self.levels.iter().map(|level| {
            labelled((Gauge, "runs", (level.runs.len() as u64).into()), "level", level.level)
        });
        let mut metrics = self.query_metrics();
        metrics.extend(self.counters().map(single));
        metrics.extend(self.gauges().map(single));
        metrics.extend(self.derived().map(single));
        metrics.extend(self.latency_metrics());
        metrics.extend(self.elastic_metrics());
        metrics.extend(runs);
        metrics
    }

    fn query_metrics(&self) -> Vec<Metric> {
        let [point, open, closed] = [&self.point, &self.open_seek, &self.closed_seek];
        let kinds = [("point", point), ("open_seek", open), ("closed_seek", closed)];
        let of_field = |(place, name): (usize, &'static str)| {
            let row = |stats: &QueryStats| (Counter, name, stats.fields()[place].into());
            kinds.map(|(kind, stats)| labelled(row(stats), "kind", kind))
        };
        QueryStats::PATHS.into_iter().enumerate().flat_map(of_field).collect()
    }

    fn counters(&self) -> [Row; 16] {
        rows! { Counter, "", self,
            writes, bytes_written_user, bytes_flushed, bytes_merged, flushes, merges,
            slowdowns.count, slowdowns.seconds, stops.count, stops.seconds, stalls, stall_seconds,
            lock_waits.count, lock_waits.seconds, guard.seconds, files.reopened,
        }
    }

    fn gauges(&self) -> [Row; 33] {
        rows! { Gauge, "", self,
            memtables, memtable_bytes, memtable_entries, logs, log_bytes, fence_bytes, cache_bytes,
            kept_logs, kept_log_bytes, kept_value_files, kept_value_bytes,
            table_file_bytes, leaving_tables, merging, sequence,
            files.open, files.max, value_files, value_bytes, value_garbage_bytes,
            obsolete.tables, obsolete.bytes,
            obsolete.scans, obsolete.pinned_trees, obsolete.followed_trees,
            guard.bits_per_key, guard.memory_bytes, guard.base_bytes, guard.overlay_bytes,
            guard.base_entries, guard.overlay_entries, guard.open_seconds, guard.rebuild_peak_bytes,
        }
    }

    /// Returns numbers that are not fields.
    fn derived(&self) -> [Row; 6] {
        [
            (Gauge, "memory_bytes", self.memory_bytes().into()),
            (Gauge, "table_bytes", self.table_bytes().into()),
            (Gauge, "write_amplification", self.write_amplification().into()),
            (Gauge, "unsynced_seconds", self.unsynced_seconds.unwrap_or(0.0).into()),
            (Gauge, "stopped", u64::from(self.failure.is_some()).into()),
            (Gauge, "guard.damaged_filters", (self.guard.damaged.len() as u64).into()),
        ]
    }

    /// Returns the histogram of each kind of call.
    fn latencies(&self) -> [(&'static str, &Latency); 3] {
        [("get", &self.gets), ("seek", &self.seeks), ("write", &self.batches)]
    }

    /// Returns quantiles of the call times; 0 if no call was timed.
    fn latency_metrics(&self) -> Vec<Metric> {
        let shares = [("latency.p50", 0.5), ("latency.p99", 0.99), ("latency.p999", 0.999)];
        let of_share = |(name, share)| {
            self.latencies().map(|(kind, latency)| {
                let seconds = latency.quantile(share).unwrap_or_default().as_secs_f64();
                labelled((Gauge, name, seconds.into()), "kind", kind)
            })
        };
        shares.into_iter().flat_map(of_share).collect()
    }

    /// Returns the numbers of the guard `elastic`.
    fn elastic_metrics(&self) -> Vec<Metric> {
        let Some(elastic) = &self.guard.elastic else { return Vec::new() };
        let tables = elastic.tables_by_sub_filters.iter().enumerate();
        let tables = tables.map(|(count, &tables)| {
            labelled((Gauge, "guard.elastic.tables_by_sub_filters", tables.into()), "units", count)
        });
        let gauges: [Row; 3] = rows! { Gauge, "guard.elastic.", elastic,
            budget_bytes, sub_filter_bytes, expected_rate,
        };
        let counters: [Row; 3] = rows! { Counter, "guard.elastic.", elastic,
            loads, drops, counted_gets,
        };
        tables.chain(gauges.into_iter().chain(counters).map(single)).collect()
    }

    /// Returns all numbers in the text format of Prometheus.
    pub fn prometheus(&self) -> String {
        prometheus(&[("", self)])
    }

    /// Like [`prometheus`](Stats::prometheus), for several stores. Each line has the label `store`
    /// with the name given here.
    pub fn prometheus_of(stores: &[(&str, &Stats)]) -> String {
        let named = stores.iter().map(|(name, stats)| {
            let name = name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            (format!("store=\"{name}\","), *stats)
        });
        let named: Vec<(String, &Stats)> = named.collect();
        let named: Vec<(&str, &Stats)> = named.iter().map(|(name, of)| (&**name, *of)).collect();
        prometheus(&named)
    }
}

/// Writes the metrics of several stores, each with the labels for its lines. The format requires
/// all lines of a metric to be adjacent.
fn prometheus(stores: &[(&str, &Stats)]) -> String {
    let mut lines: Vec<(&str, Metric)> = Vec::new();
    for (labels, stats) in stores {
        lines.extend(stats.metrics().into_iter().map(|metric| (*labels, metric)));
    }
    let mut order: Vec<&'static str> = Vec::new();
    lines.iter().for_each(|(_, metric)| {
        if !order.contains(&metric.name) {
            order.push(metric.name);
        }
    });
    let place = |name: &str| order.iter().position(|known| *known == name);
    lines.sort_by_key(|(_, metric)| place(metric.name));
    let (mut text, mut last) = (String::new(), "");
    for (labels, metric) in &lines {
        let (exposed, value) = (metric.exposed(), metric.value);
        if metric.name != last {
            let kind = if metric.kind == Counter { "counter" } else { "gauge" };
            let _ = writeln!(text, "# TYPE trommel_{exposed} {kind}");
            last = metric.name;
        }
        let own = metric.label.as_ref().map(|(label, of)| format!("{label}=\"{of}\""));
        let labels = [labels, &*own.unwrap_or_default()].concat();
        let _ = match labels.trim_end_matches(',') {
            "" => writeln!(text, "trommel_{exposed} {value}"),
            labels => writeln!(text, "trommel_{exposed}{{{labels}}} {value}"),
        };
    }
    let _ = writeln!(text, "# TYPE trommel_call_seconds histogram");
    for (labels, stats) in stores {
        let latencies = stats.latencies();
        latencies.iter().for_each(|(kind, latency)| latency.expose(labels, kind, &mut text));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use crate::plan::guard_kind::GuardKind;
    use crate::plan::options::Options;
    use crate::shared::environment::Environment;
    use crate::storage::memory::Memory;
    use crate::sync::Arc;
    use crate::tree::stats::Stats;
    use crate::{Background, Db};

    fn store(guard: GuardKind) -> Db {
        let environment = Environment::new().storage(Arc::new(Memory::new()));
        let options = Options::new().guard(guard).background(Background::Stepped);
        Db::open_with("db", options, environment).expect("opens")
    }

    #[test]
    fn a_name_is_given_once_for_each_value_of_its_label() {
        let db = store(GuardKind::Grf);
        db.put("key", "value").and_then(|()| db.compact()).expect("merges");
        let metrics = db.stats().expect("open").metrics();
        let mut seen = HashSet::new();
        for metric in &metrics {
            assert!(seen.insert((metric.exposed(), metric.label.clone())), "{metric:?} twice");
        }
        assert!(metrics.len() > 60, "{}", metrics.len());
    }

    #[test]
    fn prometheus_reads_the_names_that_it_knows() {
        let db = store(GuardKind::Grf);
        db.put("key", "value").and_then(|()| db.compact()).expect("merges");
        db.get("key").expect("reads");
        let text = db.stats().expect("open").prometheus();
        for line in [
            "# TYPE trommel_query_queries_total counter",
            "trommel_query_queries_total{kind=\"point\"} 1",
            "trommel_user_bytes_total 8",
            "trommel_slowdown_seconds_total 0",
            "trommel_files_open_max ",
            "trommel_obsolete_held_by_scans 0",
            "trommel_runs{level=\"0\"} 1",
            "# TYPE trommel_guard_bytes gauge",
        ] {
            assert!(text.lines().any(|known| known.starts_with(line)), "{line}: {text}");
        }
        assert_eq!(text.matches("# TYPE trommel_query_queries_total").count(), 1);
    }

    #[test]
    fn several_stores_share_a_text_with_a_label_each() {
        let stores = [store(GuardKind::Grf), store(GuardKind::Open)];
        let stats = stores.each_ref().map(|db| db.stats().expect("open"));
        let text = Stats::prometheus_of(&[("an\"na", &stats[0]), ("beat", &stats[1])]);
        for line in [
            "trommel_writes_total{store=\"an\\\"na\"} 0",
            "trommel_writes_total{store=\"beat\"} 0",
            "trommel_query_queries_total{store=\"beat\",kind=\"point\"} 0",
            "trommel_call_seconds_count{store=\"beat\",kind=\"get\"} 0",
        ] {
            assert!(text.lines().any(|known| known == line), "{line}: {text}");
        }
        let types: Vec<&str> = text.lines().filter(|line| line.starts_with("# TYPE")).collect();
        let distinct: HashSet<&&str> = types.iter().collect();
        assert_eq!(types.len(), distinct.len(), "each metric has its lines together");
        assert_eq!(text.lines().count() - types.len(), {
            let alone = stats.iter().map(|stats| stats.prometheus());
            alone.map(|text| text.lines().filter(|line| !line.starts_with('#')).count()).sum()
        });
    }
}
