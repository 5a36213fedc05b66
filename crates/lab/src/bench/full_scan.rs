//! Full scans, forward and backward: what a guard costs where it cannot help.
//!
//! Invariant: a scan that misses a stored key counts as a wrong answer.

use std::hint::black_box;

use trommel::Db;

use crate::bench::rounds::medians_ns;
use crate::error::Result;
use crate::report::FullScanReport;

/// Scans the stores in turns. Returns the times of each, and how many entries were missing or
/// surplus.
pub(crate) fn measure_full_scans(dbs: &[&Db], keys: u64) -> Result<Vec<(FullScanReport, u64)>> {
    let mut wrong = vec![0; dbs.len()];
    let mut rounds = |scan: fn(&Db) -> trommel::Result<u64>| {
        medians_ns(dbs.len(), |side| {
            let entries = scan(dbs[side])?;
            wrong[side] += entries.abs_diff(keys);
            Ok::<_, crate::error::LabError>(entries)
        })
    };
    let (forward, backward) = (rounds(forward)?, rounds(backward)?);
    let reports = forward.into_iter().zip(backward).zip(wrong);
    Ok(reports
        .map(|((forward, backward), wrong)| {
            let report = FullScanReport {
                ns_per_entry: forward,
                backward_ns_per_entry: backward,
                entries: keys,
            };
            (report, wrong)
        })
        .collect())
}

fn forward(db: &Db) -> trommel::Result<u64> {
    let (mut scan, mut entries) = (db.range(..), 0);
    while let Some(entry) = scan.next_lent() {
        black_box(entry?);
        entries += 1;
    }
    Ok(entries)
}

fn backward(db: &Db) -> trommel::Result<u64> {
    let (mut scan, mut entries) = (db.range(..), 0);
    while let Some(entry) = scan.next_back_lent() {
        black_box(entry?);
        entries += 1;
    }
    Ok(entries)
}
