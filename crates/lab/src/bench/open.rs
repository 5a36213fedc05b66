//! `bench open`: how long opening a store takes, compared with reading what it must read.
//! ```text
//! with the image      open        against   reading the image's file
//! without it          open        against   reading all keys once
//! ```
//! Invariants: all measurements take turns in every round, on files in the system's page cache.
//! They take CPU time, which a busy machine changes little. Reading and opening are also measured
//! in elapsed time, after the system was asked to drop the files from its cache. The report says
//! where the filter came from, so it shows if an opening took another path.

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;
use trommel::{Background, Db, GuardKind, Options, SyncPolicy};

use crate::bench::fill::fill;
use crate::bench::forget::forget_files;
use crate::bench::readers::cpu_time;
use crate::error::{LabError, Result};
use crate::keys::rng::scattered_key;
use crate::median::median;
use crate::progress::Progress;

/// What to measure.
#[derive(Clone, Debug)]
pub struct OpenPlan {
    /// Keys in the store.
    pub keys: u64,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// Rounds; the median counts.
    pub rounds: usize,
    /// Seed of the keys.
    pub seed: u64,
    /// The store's folder: a new one, or that of an earlier run with as many keys.
    pub folder: PathBuf,
}

/// What `bench open` measured: median CPU times in seconds. Field names are an interface.
#[derive(Clone, Debug, Serialize)]
pub struct OpenReport {
    /// Keys in the store.
    pub keys: u64,
    /// Rounds; the median counts.
    pub rounds: u64,
    /// Bytes of the filter's image.
    pub image_bytes: u64,
    /// Time to read the image's file.
    pub read_image_seconds: f64,
    /// Time to open the store with the image.
    pub open_seconds: f64,
    /// `open_seconds` divided by `read_image_seconds`.
    pub open_over_read_image: f64,
    /// Elapsed time to read the image's file when it is not in the page cache.
    pub cold_read_image_seconds: f64,
    /// Elapsed time to open the store then.
    pub cold_open_seconds: f64,
    /// `cold_open_seconds` divided by `cold_read_image_seconds`.
    pub cold_open_over_read_image: f64,
    /// Where the filter came from, as the store reports it.
    pub open_filter: String,
    /// Time to open the store without a filter, for comparison: manifest, log and the tables'
    /// indexes.
    pub open_unguarded_seconds: f64,
    /// Time to read all keys once.
    pub read_keys_seconds: f64,
    /// Time to open the store without the image, which rebuilds the filter.
    pub rebuild_seconds: f64,
    /// `rebuild_seconds` divided by `read_keys_seconds`.
    pub rebuild_over_read_keys: f64,
    /// Where the filter came from in that case.
    pub rebuild_filter: String,
}

/// Measures openings. The store stays in `plan.folder`.
pub fn bench_open(plan: &OpenPlan, progress: &mut dyn Progress) -> Result<OpenReport> {
    if plan.keys == 0 || plan.rounds == 0 {
        return Err(LabError::Plan("a key and a round are the least to measure".into()));
    }
    if !plan.folder.join("MANIFEST").exists() {
        make(plan, progress)?;
    }
    let images = images_of(&plan.folder)?;
    let mut times: [Vec<f64>; 7] = Default::default();
    let (mut open_filter, mut rebuild_filter, mut image_bytes) = Default::default();
    progress.stage("opening", plan.rounds as u64);
    for _ in 0..plan.rounds {
        let start = cpu_time();
        image_bytes = read_files(&images)?;
        times[0].push((cpu_time() - start).as_secs_f64());
        let opened = open(plan, GuardKind::Grf)?;
        times[1].push(opened.seconds);
        open_filter = opened.filter;
        times[2].push(open(plan, GuardKind::Open)?.seconds);
        times[3].push(read_keys(plan)?);
        let rebuilt = open_without(&images, plan)?;
        times[4].push(rebuilt.seconds);
        rebuild_filter = rebuilt.filter;
        forget_files(&plan.folder)?;
        let start = Instant::now();
        read_files(&images)?;
        times[5].push(start.elapsed().as_secs_f64());
        forget_files(&plan.folder)?;
        let start = Instant::now();
        let db = Db::open(&plan.folder, options(GuardKind::Grf))?;
        times[6].push(start.elapsed().as_secs_f64());
        drop(db);
        progress.advance(1);
    }
    let [read_image, open, unguarded, read_keys, rebuild, cold_read, cold_open] =
        times.map(|mut times| median(&mut times));
    Ok(OpenReport {
        keys: plan.keys,
        rounds: plan.rounds as u64,
        image_bytes,
        read_image_seconds: read_image,
        open_seconds: open,
        open_over_read_image: open / read_image,
        cold_read_image_seconds: cold_read,
        cold_open_seconds: cold_open,
        cold_open_over_read_image: cold_open / cold_read,
        open_filter,
        open_unguarded_seconds: unguarded,
        read_keys_seconds: read_keys,
        rebuild_seconds: rebuild,
        rebuild_over_read_keys: rebuild / read_keys,
        rebuild_filter,
    })
}

fn options(guard: GuardKind) -> Options {
    // No background thread may work while an opening is measured.
    Options::new()
        .guard(guard)
        .learn_questions(false)
        .background(Background::Stepped)
        .sync(SyncPolicy::Never)
}

fn folder_error(path: &Path) -> impl Fn(std::io::Error) -> LabError {
    let path = path.to_path_buf();
    move |error| LabError::Folder { path: path.clone(), problem: error.to_string() }
}

fn make(plan: &OpenPlan, progress: &mut dyn Progress) -> Result<()> {
    let options = options(GuardKind::Grf).background(Background::Threads(1));
    let db = Db::open(&plan.folder, options)?;
    let key_of = |place| scattered_key(plan.seed, place);
    fill(&db, (plan.keys, plan.value_bytes), key_of, progress)?;
    Ok(db.close()?)
}

/// Returns the files of the filter's image: a large filter has several. An error if there is none.
fn images_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let files = std::fs::read_dir(folder).map_err(folder_error(folder))?;
    let paths = files.filter_map(|file| Some(file.ok()?.path()));
    let images: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|end| end == "filter")).collect();
    if images.is_empty() {
        let problem = "no image of a filter".to_owned();
        return Err(LabError::Folder { path: folder.to_path_buf(), problem });
    }
    Ok(images)
}

/// Reads files one after the other. Returns how many bytes they have.
fn read_files(files: &[PathBuf]) -> Result<u64> {
    let bytes = |file: &PathBuf| Ok(std::fs::read(file).map_err(folder_error(file))?.len() as u64);
    files.iter().map(bytes).sum()
}

/// Opens the store while its images have other names, and gives them theirs again.
fn open_without(images: &[PathBuf], plan: &OpenPlan) -> Result<Opening> {
    let aside = |image: &Path| image.with_extension("filter-aside");
    for image in images {
        std::fs::rename(image, aside(image)).map_err(folder_error(image))?;
    }
    let opened = open(plan, GuardKind::Grf);
    for image in images {
        std::fs::rename(aside(image), image).map_err(folder_error(image))?;
    }
    opened
}

/// The CPU time of one opening, and where its filter came from.
struct Opening {
    seconds: f64,
    filter: String,
}

fn open(plan: &OpenPlan, guard: GuardKind) -> Result<Opening> {
    let start = cpu_time();
    let db = Db::open(&plan.folder, options(guard))?;
    let seconds = (cpu_time() - start).as_secs_f64();
    let stats = db.stats()?;
    if stats.entries() != plan.keys {
        let problem = format!("{} keys, not {}", stats.entries(), plan.keys);
        return Err(LabError::Folder { path: plan.folder.clone(), problem });
    }
    let filter = stats.filter_recovery.to_string();
    Ok(Opening { seconds, filter })
}

/// Returns the CPU time of one full scan, the opening not included.
fn read_keys(plan: &OpenPlan) -> Result<f64> {
    let db = Db::open(&plan.folder, options(GuardKind::Open))?;
    let start = cpu_time();
    let mut count = 0;
    for entry in db.range(..) {
        entry?;
        count += 1;
    }
    let seconds = (cpu_time() - start).as_secs_f64();
    assert_eq!(count, plan.keys, "a scan has missed keys");
    Ok(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Silent;

    #[test]
    fn each_open_goes_the_way_it_should() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let folder = folder.path().join("store");
        let plan = OpenPlan { keys: 5000, value_bytes: 20, rounds: 2, seed: 7, folder };
        // The second pass reopens the store that the first one made.
        for _ in 0..2 {
            let report = bench_open(&plan, &mut Silent).expect("measures");
            assert_eq!(report.open_filter, "image");
            assert!(report.rebuild_filter.starts_with("rebuilt"), "{report:?}");
            assert!(report.image_bytes > 0 && report.open_over_read_image > 0.0, "{report:?}");
        }
        let other = OpenPlan { keys: 5001, ..plan };
        let refused = bench_open(&other, &mut Silent).expect_err("another number of keys");
        assert!(matches!(refused, LabError::Folder { .. }), "{refused}");
    }
}
