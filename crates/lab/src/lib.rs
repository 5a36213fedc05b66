//! Workloads and measurement for Trommel. A library that measures and never prints: it tells its
//! progress to whoever listens, and gives its results as plain data.
//! ```text
//! keys -> queries -> a tree of known shape per guard -> rounds that take turns -> medians
//! ```

mod amplification;
mod askers;
mod by_level;
mod chucky_codes;
mod closed_seeks;
mod compare;
mod counts;
mod deletions;
mod dist;
mod error;
pub mod experiment;
mod folder_size;
mod fpr;
mod fpr_tree;
mod full_scan;
mod key_files;
mod keys;
mod keyset;
mod kill;
mod laws;
mod many;
mod natural_earth;
mod open;
mod pace;
mod partial_writes;
mod pipelined;
mod probe;
mod probe_filters;
mod progress;
mod put_ns;
mod queries;
mod question_draw;
mod read;
mod read_workload;
mod readers;
mod real_sets;
mod replay;
mod report;
mod rng;
mod rounds;
mod shift;
mod skew;
mod stress;
mod surf_steps;
mod task;
mod text;
mod threads;
mod tree;
mod unsynced;
mod wilson;
mod write;
mod ycsb;

pub use amplification::{ExpectedWrites, expected_writes};
pub use by_level::{LevelCost, TableAsks};
pub use chucky_codes::{
    AlignmentRow, ChuckyCodesPlan, ChuckyCodesReport, GroupRow, LevelsRow, RatioRow, TablesRow,
    chucky_codes,
};
pub use compare::{
    AnswerReport, ComparePlan, CompareReport, Contender, Engine, FillReport, OwnTree, Peer,
    PeerCounts, PeerSettings, PeerShape, RunLoad, ShapeName, Trommel, WriteEntry, bench_compare,
    check_peer,
};
pub use dist::{Dist, FileFormat};
pub use error::{LabError, Result};
pub use fpr::{FprPlan, bench_fpr, fingerprints_name, fingerprints_named};
pub use keys::{KeyList, SortedKeys, key_after, key_before};
pub use keyset::KeySet;
pub use kill::{KillFailure, KillPlan, KillReport, Lie, VictimPlan, kill_test, run_victim};
pub use natural_earth::{morton, natural_earth};
pub use open::{OpenPlan, OpenReport, bench_open};
pub use pipelined::PipelinedReport;
pub use probe::{ProbePlan, bench_probe};
pub use progress::{Progress, Silent};
pub use put_ns::PutNs;
pub use queries::{Kind, Queries};
pub use read::{Measured, ReadPlan, bench_read};
pub use read_workload::{DeletedBy, Deletion, ReadWorkload};
pub use readers::{ReadersPlan, ReadersReport, bench_readers};
pub use real_sets::RealSet;
pub use replay::{
    Recording, RecordingHead, ReplayAnswer, ReplayCode, ReplayDigits, ReplayEvent, ReplayPlan,
    ReplayRun, ReplayStep, RunRecorder, RunToRecord, read_recording, record_replay,
};
pub use report::{ClosedSeekReport, DeletedReport, ShiftRates, ShiftReport};
pub use report::{
    FprFilter, FprRate, FprReport, FullScanReport, KeysReport, ManyReport, TurnsReport,
};
pub use report::{KindReport, LevelRuns, LoadReport, ProbeNs, ProbeRates, ProbeReport, ReadReport};
pub use rng::Rng;
pub use skew::Skew;
pub use stress::{StressFailure, StressPlan, StressReport, stress};
pub use surf_steps::{SurfStep, SurfStepsPlan, surf_steps};
pub use task::PeerTask;
pub use text::{BadText, TextFormat, TextLayout, TextRecord, TextRecords, from_hex};
pub use threads::{ThreadsFailure, ThreadsPlan, ThreadsReport, stress_threads};
pub use tree::TreePlan;
pub use trommel_filters::Fingerprints;
pub use write::{Stalls, WritePattern, WritePlan, WriteReport, bench_write};
pub use ycsb::{
    CostReport, Distribution, LatencyReport, Operation, RunLength, TimesReport, Workload, YcsbPlan,
    YcsbReport, bench_ycsb,
};
