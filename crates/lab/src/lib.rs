//! Workloads and measurement for Trommel. The library measures and never prints: a listener hears
//! its progress, and results are plain data.
//! ```text
//! keys -> queries -> a tree of known shape per guard -> rounds that take turns -> medians
//! ```

mod bench;
mod bound;
mod commits;
mod compare;
mod error;
pub mod experiment;
mod follow;
mod keys;
mod kill;
mod median;
mod peer_task;
mod progress;
mod questions;
mod replay;
mod report;
mod stress;
mod threads;
mod transactions;
mod transfer;
mod tree_plan;
mod ycsb;

pub use bench::amplification::{ExpectedWrites, expected_writes};
pub use bench::chucky_codes::{
    AlignmentRow, ChuckyCodesPlan, ChuckyCodesReport, GroupRow, LevelsRow, RatioRow, TablesRow,
    chucky_codes,
};
pub use bench::fpr::{FprPlan, bench_fpr, fingerprints_name, fingerprints_named};
pub use bench::map::{MapPlan, MapReport, MapTimes, bench_map};
pub use bench::open::{OpenPlan, OpenReport, bench_open};
pub use bench::probe::bench_probe;
pub use bench::probe_plan::ProbePlan;
pub use bench::put_ns::PutNs;
pub use bench::read::{Measured, ReadPlan, bench_read};
pub use bench::readers::{ReadersPlan, ReadersReport, bench_readers};
pub use bench::rounds::ROUNDS;
pub use bench::surf_steps::{SurfStep, SurfStepsPlan, surf_steps};
pub use bench::write::{Stalls, WritePattern, WritePlan, WriteReport, bench_write, bench_writes};
pub use bound::{BoundPlan, BoundReport, BoundRow, bound};
pub use commits::{CommitsFailure, CommitsPlan, CommitsReport, stress_commits};
pub use compare::{
    AnswerReport, Attempt, ComparePlan, CompareReport, CompressionPlan, CompressionReport,
    Contender, EmptyQueryAnswer, Engine, FillReport, OpenTransaction, OwnTree, PackedData, Peer,
    PeerCounts, PeerPacking, PeerSettings, PeerShape, RunLoad, ShapeName, Space, StoresPlan,
    TransactionWork, TransactionalStore, Trommel, ValuesPlan, ValuesReport, ValuesStep, WriteEntry,
    bench_compare, bench_compression, bench_values, check_peer,
};
pub use error::{LabError, Result};
pub use follow::{
    FollowPlan, FollowReport, FollowRole, FollowerReport, follow_test, run_follow_role,
};
pub use keys::dist::{Dist, FileFormat};
pub use keys::key_list::{KeyList, SortedKeys, key_after, key_before};
pub use keys::keyset::KeySet;
pub use keys::natural_earth::{morton, natural_earth};
pub use keys::real_sets::RealSet;
pub use keys::rng::Rng;
pub use keys::skew::Skew;
pub use keys::text::{BadText, TextFormat, TextLayout, TextRecord, TextRecords, from_hex, to_hex};
pub use kill::{KillFailure, KillPlan, KillReport, Lie, VictimPlan, kill_test, run_victim};
pub use peer_task::PeerTask;
pub use progress::{Progress, Silent};
pub use questions::queries::{Kind, Queries};
pub use questions::read_workload::{DeletedBy, Deletion, ReadWorkload};
pub use questions::unanswered::Ask;
pub use replay::{
    Recording, RecordingHead, ReplayAnswer, ReplayCode, ReplayDigits, ReplayEvent, ReplayPlan,
    ReplayRun, ReplayStep, RunRecorder, RunToRecord, read_recording, record_replay,
};
pub use report::{
    ClosedSeekReport, DeletedReport, EmptyQueryCost, FprFilter, FprGrowth, FprRate, FprReport,
    FullScanReport, KeysReport, KindReport, LevelCost, LevelRuns, LoadReport, ManyReport,
    PipelinedReport, ProbeNs, ProbeRates, ProbeReport, ProbeThreads, ReadReport, ShiftRates,
    ShiftReport, TableAsks, TurnsReport,
};
pub use stress::{HistoryKind, StressFailure, StressPlan, StressReport, stress};
pub use threads::{ThreadsFailure, ThreadsPlan, ThreadsReport, stress_threads};
pub use transactions::{
    KindTimes, TransactionWorkload, TransactionsPlan, TransactionsReport, bench_transactions,
};
pub use transfer::{
    BadStream, StreamEnd, StreamEntry, StreamForm, StreamReader, StreamWriter, escaped, json_bytes,
    unescaped,
};
pub use tree_plan::{FilterMemory, PartsPlan, TreePlan};
pub use trommel::options::Compression;
pub use trommel_filters::Fingerprints;
pub use trommel_filters::bits::key_bits::after_all_with;
pub use ycsb::{
    CostReport, Distribution, LatencyReport, Operation, RunLength, TimesReport, Workload, YcsbPlan,
    YcsbReport, YcsbTree, bench_ycsb,
};
