//! Gives a filter the keys of runs when a store is opened: as hashes, where tables store them.
//! ```text
//! table   as many stored hashes as keys               -> the hashes; no block is read
//!         no hashes, damaged ones, too few, too many  -> the keys, from its blocks
//! ```
//! Invariant: each key of a run is given once, as a hash or as the key, whatever state a table's
//! hashes are in.

use std::fmt;

use trommel_filters::RunLocatorKind;

use crate::error::Result;
use crate::files::distinct_keys::for_each_key;
use crate::files::run::Run;
use crate::files::run_table::RunTable;

/// A key, or its hash.
pub(crate) enum KeyOrHash<'a> {
    Key(&'a [u8]),
    Hash(u64),
}

/// What a filter was built from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeySource {
    /// Tables whose hashes were read.
    hashes: usize,
    /// Tables whose blocks were read.
    keys: usize,
    /// Those of `keys` whose hashes were unusable.
    unusable: usize,
}

impl KeySource {
    /// Calls `f` with each key of these tables of a run.
    pub(super) fn tables<'t>(
        &mut self,
        tables: impl IntoIterator<Item = &'t RunTable>,
        kind: &dyn RunLocatorKind,
        mut f: impl FnMut(KeyOrHash<'_>),
    ) -> Result<()> {
        let takes_hashes = kind.takes_hashes();
        tables.into_iter().try_for_each(|table| match takes_hashes {
            true => self.hashes(table, &mut f),
            false => self.keys_of(table, &mut f),
        })
    }

    fn hashes(&mut self, table: &RunTable, f: &mut impl FnMut(KeyOrHash<'_>)) -> Result<()> {
        // Some hashes of a trimmed table belong to keys that are no longer in the tree.
        let hashes = if table.is_trimmed() { Ok(None) } else { table.table.key_hashes() };
        if let Ok(Some(hashes)) = hashes {
            self.hashes += 1;
            hashes.into_iter().for_each(|hash| f(KeyOrHash::Hash(hash)));
            return Ok(());
        }
        self.unusable += usize::from(hashes.is_err());
        self.keys_of(table, f)
    }

    fn keys_of(&mut self, table: &RunTable, f: &mut impl FnMut(KeyOrHash<'_>)) -> Result<()> {
        self.keys += 1;
        let run = Run::of_table(table.clone()).expect("one table is a run");
        for_each_key(&run, |key| f(KeyOrHash::Key(key)))
    }

    /// The source of a sorted view, which reads the keys of all tables.
    pub(super) fn keys(tables: usize) -> Self {
        KeySource { keys: tables, ..KeySource::default() }
    }
}

fn tables(count: usize) -> String {
    if count == 1 { "1 table".to_string() } else { format!("{count} tables") }
}

impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.hashes, self.keys) {
            (hashes, 0) => write!(f, "from hashes in {}, no block was read", tables(hashes))?,
            (0, keys) => write!(f, "from the keys of {}", tables(keys))?,
            (hashes, keys) => {
                write!(f, "from hashes in {} and the keys of {}", tables(hashes), tables(keys))?;
            }
        }
        match self.unusable {
            0 => Ok(()),
            unusable => write!(f, ", as hashes in {} cannot be used", tables(unusable)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries::batch::Batch;
    use crate::files::table::format::{
        TAG_HASHES, TAIL_SIZE, decode_sections, decode_tail, encode_footer,
    };
    use crate::plan::background::Background;
    use crate::plan::guard_kind::GuardKind;
    use crate::plan::options::Options;
    use crate::shared::environment::Environment;
    use crate::storage::memory::Memory;
    use crate::storage::traits::Storage;
    use crate::sync::Arc;
    use crate::tools::progress::{Steps, unheard};
    use crate::write::engine::Engine;
    use std::path::{Path, PathBuf};
    use trommel_guards::kinds;

    const KEYS: u64 = 900;

    fn open(disk: &Memory, kind: &'static dyn RunLocatorKind) -> Engine {
        let env = Environment::new().storage(Arc::new(disk.clone()));
        let options = Options::new()
            .background(Background::Stepped)
            .guard(GuardKind::Locator(kind))
            .table_bytes(4096);
        crate::open::open(Path::new("db"), &options, env).expect("opens")
    }

    /// Makes a store of two runs, the older one of several tables. Returns the tables' paths,
    /// oldest first.
    fn store(kind: &'static dyn RunLocatorKind) -> (Memory, Vec<PathBuf>) {
        let disk = Memory::new();
        let engine = open(&disk, kind);
        for (first, count) in [(0, KEYS), (KEYS, 5)] {
            let mut batch = Batch::new();
            (first..first + count).for_each(|n| {
                batch.put(n.to_be_bytes(), [1; 40]);
            });
            engine.commit.write(&engine, batch, true).expect("writes");
            engine.commit.writer().seal(&engine).expect("seals");
            engine.flush_sealed().expect("flushes");
        }
        drop(engine);
        let mut names = disk.list(Path::new("db")).expect("lists");
        names.retain(|name| name.ends_with(".table"));
        names.sort();
        (disk, names.iter().map(|name| Path::new("db").join(name)).collect())
    }

    /// Removes the last hash of a table, and corrects its checksums.
    fn cut_hashes(disk: &Memory, path: &Path) {
        let mut bytes = disk.file(path).expect("a table");
        let tail_at = bytes.len() - TAIL_SIZE;
        let tail = decode_tail(&bytes[tail_at..]).expect("a tail");
        let list_at = tail_at - tail.list_len as usize;
        let list = &bytes[list_at..tail_at];
        let mut sections = decode_sections(list, tail, list_at as u64).expect("sections");
        let hashes = sections.iter_mut().find(|section| section.tag == TAG_HASHES);
        let hashes = hashes.expect("a section of hashes");
        hashes.len -= size_of::<u64>() as u64;
        let range = hashes.offset as usize..(hashes.offset + hashes.len) as usize;
        hashes.checksum = crc32c::crc32c(&bytes[range]);
        bytes.truncate(list_at);
        bytes.extend(encode_footer(&sections, 2));
        disk.put_file(path, bytes);
    }

    fn has_all(engine: &Engine) -> bool {
        let get = |n: u64| crate::read::get::get(engine, &n.to_be_bytes()).expect("gets");
        (0..KEYS + 5).all(|n| get(n).is_some())
    }

    #[test]
    fn a_filter_is_made_of_hashes_without_reading_a_block() {
        for kind in [kinds::CHUCKY, kinds::CHUCKY_PLAIN] {
            let (disk, tables) = store(kind);
            assert!(tables.len() > 3);
            let engine = open(&disk, kind);
            let expected =
                format!("rebuilt: from hashes in {} tables, no block was read", tables.len());
            assert_eq!(engine.filter_recovery.to_string(), expected);
            assert_eq!(engine.table_files.cache.size_bytes(), 0);
            assert!(has_all(&engine));
            drop(engine);
            // Unreadable blocks do not matter.
            disk.flip_bit(&tables[0], 100, 0);
            assert_eq!(open(&disk, kind).filter_recovery.to_string(), expected);
        }
        let (disk, tables) = store(kinds::REMIX_SORTED);
        let recovery = open(&disk, kinds::REMIX_SORTED).filter_recovery.to_string();
        assert_eq!(recovery, format!("rebuilt: from the keys of {} tables", tables.len()));
    }

    #[test]
    fn a_table_with_a_hash_too_few_gives_its_keys() {
        let (disk, tables) = store(kinds::CHUCKY);
        cut_hashes(&disk, &tables[0]);
        cut_hashes(&disk, &tables[tables.len() - 1]);
        let engine = open(&disk, kinds::CHUCKY);
        let rest = tables.len() - 2;
        let expected = format!(
            "rebuilt: from hashes in {rest} tables and the keys of 2 tables, as hashes in 2 tables \
             cannot be used"
        );
        assert_eq!(engine.filter_recovery.to_string(), expected);
        assert!(has_all(&engine), "no key is denied");
        let damage = crate::tools::verify::verify(
            &[Arc::clone(&engine.tree)],
            &mut Steps::new(&mut unheard),
        )
        .expect("verifies")
        .damage;
        assert_eq!(damage.len(), 2, "{damage:?}");
        assert!(damage[0].contains("as many hashes as the table has keys"), "{damage:?}");
    }

    #[test]
    fn the_source_of_keys_has_a_text() {
        let text = |hashes, keys, unusable| KeySource { hashes, keys, unusable }.to_string();
        assert_eq!(text(2, 0, 0), "from hashes in 2 tables, no block was read");
        assert_eq!(text(0, 1, 0), "from the keys of 1 table");
        assert_eq!(text(3, 2, 0), "from hashes in 3 tables and the keys of 2 tables");
        let unusable = "from the keys of 2 tables, as hashes in 1 table cannot be used";
        assert_eq!(text(0, 2, 1), unusable);
    }
}
