//! The key spaces of an open store other than the default one: created, opened, renamed, dropped.
//! ```text
//! name --> manifest: number, kept options, layout --> engine, once it is requested or has data
//! drop      edit -> no write finds it, no flush or merge installs -> its tables are removed
//! ```
//! Invariants: an edit that creates or drops a key space is durable only after all earlier writes
//! are. Nothing changes a dropped key space any more, neither a batch nor an installation.

use std::collections::BTreeMap;
use std::collections::btree_map::Values;
use std::sync::OnceLock;

use crate::cost::step;
use crate::entries::keyspace_id::KeyspaceId;
use crate::error::{Error, Result};
use crate::files::log_replay::ReplayedMemtable;
use crate::plan::layout::Layout;
use crate::plan::options::keyspace::{Kept, KeyspaceOptions, Named};
use crate::plan::registry;
use crate::plan::store_layout::{
    DEFAULT_NAME, KeyspaceChange, KeyspaceEdit, KeyspaceLayout, KeyspaceRecord, NAME_BYTES_MAX,
    StoreEdit, StoreLayout,
};
use crate::shared::resources::StoreResources;
use crate::shared::write_memory::WriteMemory;
use crate::sync::{Arc, Mutex, lock};
use crate::tree::opening::{SharedByTrees, TreeOptions, open_tree};
use crate::write::engine::{Engine, EngineUse};

/// The number of write buffers that a store with one key space may have in memory.
const BUFFERS_OF_ONE: usize = 5;

/// The open key spaces.
pub(crate) struct Keyspaces {
    open: Mutex<BTreeMap<KeyspaceId, Arc<Engine>>>,
    /// None: the store is closed.
    resources: Mutex<Option<StoreResources>>,
    /// The write memory that the memtables of all key spaces share.
    memory: OnceLock<Arc<WriteMemory>>,
    /// The options of trees, by what the manifest keeps of them.
    options: Mutex<BTreeMap<Kept, Arc<TreeOptions>>>,
}

impl Keyspaces {
    /// For a store with these resources. No key space is open.
    pub(crate) fn new(resources: StoreResources) -> Self {
        let (resources, memory) = (Mutex::new(Some(resources)), OnceLock::new());
        Keyspaces { open: Mutex::default(), resources, memory, options: Mutex::default() }
    }

    /// Returns a use of each open key space.
    pub(crate) fn used(&self) -> Vec<EngineUse> {
        self.hold_still(|open| open.inspect(|_| step()).map(Engine::used).collect())
    }

    /// Returns the open key spaces.
    pub(crate) fn all(&self) -> Vec<Arc<Engine>> {
        self.hold_still(|open| open.inspect(|_| step()).cloned().collect())
    }

    /// Runs `look` on the open key spaces, while none is created, renamed or dropped. Lock order:
    /// this lock first, then the writer's.
    pub(crate) fn hold_still<T>(
        &self,
        look: impl FnOnce(Values<'_, KeyspaceId, Arc<Engine>>) -> T,
    ) -> T {
        look(lock(&self.open).values())
    }

    /// Drops all engines. Requires: the store is closed.
    pub(crate) fn clear(&self) {
        let gone = (std::mem::take(&mut *lock(&self.open)), lock(&self.resources).take());
        drop(gone);
    }

    /// Opens the key spaces that have data in tables or logs.
    pub(crate) fn open_those_with_data(
        &self,
        main: &Engine,
        mut memtables: BTreeMap<KeyspaceId, Vec<ReplayedMemtable>>,
    ) -> Result<()> {
        let has_data = |id: &KeyspaceId, keyspace: &KeyspaceLayout| {
            *id != KeyspaceId::DEFAULT
                && (!keyspace.tree.runs.is_empty() || memtables.contains_key(id))
        };
        let with_data: Vec<(KeyspaceId, KeyspaceLayout)> = {
            let manifest = main.manifest();
            let all = manifest.layout().keyspaces.iter().inspect(|_| step());
            all.filter(|(id, it)| has_data(id, it)).map(|(id, it)| (*id, it.clone())).collect()
        };
        let given = KeyspaceOptions::new();
        for (id, keyspace) in with_data {
            let memtables = memtables.remove(&id).unwrap_or_default();
            let (options, _) = self.options_of(main, &keyspace.record, &given)?;
            let engine = self.engine(main, (id, &keyspace.tree), &options, memtables)?;
            lock(&self.open).insert(id, engine);
        }
        Ok(())
    }

    /// Returns the key space with this name. If it does not exist and `makes` is set, creates it.
    pub(crate) fn named(
        &self,
        main: &Engine,
        name: &str,
        given: &KeyspaceOptions,
        makes: bool,
    ) -> Result<EngineUse> {
        let mut open = lock(&self.open);
        let known = known(main.manifest().layout(), name);
        if let Some((id, record, _)) = &known
            && let Some(engine) = open.get_mut(id)
        {
            self.set_anew(main, (engine, record), given)?;
            give_operator(main, engine, given)?;
            return Ok(engine.used());
        }
        let (id, record, tree) = match known {
            Some(known) => known,
            None if makes => self.make(main, name, given)?,
            None => return Err(unknown(main.manifest().layout(), name)),
        };
        let (options, new) = self.options_of(main, &record, given)?;
        end_feeds(main, id, (record.has_log(), options.options.log))?;
        if !new.is_empty() {
            let edit = KeyspaceEdit { options: new, ..KeyspaceEdit::default() };
            append(main, id, edit)?;
        }
        let engine = self.engine(main, (id, &tree), &options, Vec::new())?;
        give_operator(main, &engine, given)?;
        engine.start_work()?;
        open.insert(id, Arc::clone(&engine));
        Ok(engine.used())
    }

    /// Keeps the options of an open key space that were set now. If they differ from its present
    /// ones and nobody uses it, reopens it.
    fn set_anew(
        &self,
        main: &Engine,
        (engine, record): (&mut Arc<Engine>, &KeyspaceRecord),
        given: &KeyspaceOptions,
    ) -> Result<()> {
        if given.sets_nothing() {
            return Ok(());
        }
        let options = self.keep_given(main, (engine, record), given)?;
        let is_so = KeyspaceOptions::are_met_by(&engine.table_files.options, &options.options)?;
        if is_so || engine.is_used() {
            return Ok(());
        }
        *engine = self.reopen(main, engine, &options)?;
        Ok(())
    }

    /// Keeps the options of an open key space that were set now. Returns those of its next opening.
    fn keep_given(
        &self,
        main: &Engine,
        (engine, record): (&Engine, &KeyspaceRecord),
        given: &KeyspaceOptions,
    ) -> Result<Arc<TreeOptions>> {
        let (options, mut new) = self.options_of(main, record, given)?;
        end_feeds(main, engine.keyspace, (engine.has_log(), options.options.log))?;
        new.retain(|(name, _)| !KeyspaceOptions::is_set_while_open(name));
        if !new.is_empty() {
            let edit = KeyspaceEdit { options: new, ..KeyspaceEdit::default() };
            append(main, engine.keyspace, edit)?;
        }
        Ok(options)
    }

    /// Reopens a tree. Requires: nobody uses it.
    fn reopen(
        &self,
        main: &Engine,
        engine: &Arc<Engine>,
        options: &TreeOptions,
    ) -> Result<Arc<Engine>> {
        engine.flush_all()?;
        // A batch that was built while the key space was in use may still write into it.
        let mut writer = main.commit.writer();
        engine.end_work();
        engine.abandon_work();
        let settled = writer.flush_here(engine).and_then(|()| {
            // Only this tree knows the tables that an uncertain edit may have put into the
            // manifest.
            let is_certain = main.manifest().is_certain();
            if is_certain { Ok(()) } else { engine.installer().repeat_edit(engine) }
        });
        let logs = (engine.has_log(), options.options.log);
        let settled = settled.and_then(|()| end_feeds(main, engine.keyspace, logs));
        let opened = settled.and_then(|()| {
            let layout = main.manifest().layout().tree(engine.keyspace).map(Arc::clone);
            let layout = layout.expect("it is open");
            self.engine_for(main, (engine.keyspace, &layout), options, Vec::new())
        });
        let Ok(new) = opened else {
            let pool = lock(&self.resources).as_ref().map(|all| Arc::clone(&all.pool));
            pool.map_or(Ok(()), |pool| engine.resume_work(pool))?;
            return opened;
        };
        engine.release();
        if let Some(operator) = engine.merge_operator.get() {
            new.merge_operator.get_or_init(|| Arc::clone(operator));
        }
        self.join(main, &new);
        drop(writer);
        new.start_work()?;
        Ok(new)
    }

    /// Keeps the options of the default key space that were set now, and sets its merge operator.
    /// The store itself uses that key space, so the others take effect at the next opening.
    pub(crate) fn set_default(&self, main: &Engine, given: &KeyspaceOptions) -> Result<()> {
        let _open = lock(&self.open);
        if given.sets_nothing() {
            return Ok(());
        }
        let id = KeyspaceId::DEFAULT;
        let record = Arc::clone(&main.manifest().layout().keyspaces[&id].record);
        self.keep_given(main, (main, &record), given)?;
        give_operator(main, main, given)
    }

    /// Keeps options of a key space, which take effect at its next opening.
    pub(crate) fn keep(&self, main: &Engine, id: KeyspaceId, options: Named) -> Result<()> {
        let _open = lock(&self.open);
        append(main, id, KeyspaceEdit { options, ..KeyspaceEdit::default() })
    }

    fn make(
        &self,
        main: &Engine,
        name: &str,
        given: &KeyspaceOptions,
    ) -> Result<(KeyspaceId, Arc<KeyspaceRecord>, Arc<Layout>)> {
        check_name(name)?;
        // Invalid options must not create a key space.
        let (_, options) = self.options_of(main, &KeyspaceRecord::default(), given)?;
        let mut writer = main.commit.writer();
        writer.make_durable(main)?;
        let id = KeyspaceId(main.manifest().layout().next_keyspace);
        let change = Some(KeyspaceChange::Created { name: name.to_string() });
        append(main, id, KeyspaceEdit { change, options, ..KeyspaceEdit::default() })?;
        drop(writer);
        Ok(known(main.manifest().layout(), name).expect("it was made"))
    }

    /// Returns the options of a key space, and those of them that are to be kept. Key spaces that
    /// keep the same options share them.
    fn options_of(
        &self,
        main: &Engine,
        record: &KeyspaceRecord,
        given: &KeyspaceOptions,
    ) -> Result<(Arc<TreeOptions>, Named)> {
        let (new, kept) = given.to_keep(&record.options)?;
        if let Some(known) = kept.as_ref().and_then(|kept| lock(&self.options).get(kept).cloned()) {
            return Ok((known, new));
        }
        let store = main.table_files.folder.path();
        let options = main.table_files.options.of_keyspace(&record.options, given, store)?;
        options.check()?;
        registry::register(options.guard)?;
        let options = Arc::new(TreeOptions::new(options));
        if let Some(kept) = kept {
            let mut known = lock(&self.options);
            // Removes options that no key space uses any more.
            if known.len().is_power_of_two() {
                known.retain(|_, options| Arc::strong_count(&options.options) > 1);
            }
            known.insert(kept, Arc::clone(&options));
        }
        Ok((options, new))
    }

    fn engine(
        &self,
        main: &Engine,
        tree: (KeyspaceId, &Arc<Layout>),
        options: &TreeOptions,
        memtables: Vec<ReplayedMemtable>,
    ) -> Result<Arc<Engine>> {
        let engine = self.engine_for(main, tree, options, memtables)?;
        let _writer = main.commit.writer();
        self.join(main, &engine);
        Ok(engine)
    }

    fn engine_for(
        &self,
        main: &Engine,
        tree: (KeyspaceId, &Arc<Layout>),
        options: &TreeOptions,
        memtables: Vec<ReplayedMemtable>,
    ) -> Result<Arc<Engine>> {
        let resources = lock(&self.resources).clone();
        let Some(resources) = resources.map(|all| all.for_tree(&options.options)) else {
            return Err(Error::Closed { path: main.table_files.folder.path().to_path_buf() });
        };
        let table_files = main.table_files.sharing(tree.0, &options.options);
        let workers = resources.pool.place(Arc::clone(main.life()));
        let memtables = (memtables, resources.memtable_size);
        let shared = SharedByTrees::with(main);
        let tree = open_tree(&shared, tree, (options, table_files), memtables, workers)?;
        Ok(Arc::new(Engine::new(tree, Arc::clone(&main.commit), resources, None)))
    }

    /// Makes a tree writable. Requires: the caller is the writer.
    fn join(&self, main: &Engine, engine: &Arc<Engine>) {
        let memory = self.memory.get_or_init(|| {
            let of_one = main.table_files.options.write_buffer_bytes;
            Arc::new(WriteMemory::new(of_one.saturating_mul(BUFFERS_OF_ONE)))
        });
        [main, engine].into_iter().for_each(|engine| engine.join_memory(memory));
        main.commit.trees.add(engine);
    }

    /// Renames a key space.
    pub(crate) fn rename(&self, main: &Engine, from: &str, to: &str) -> Result<()> {
        let _open = lock(&self.open);
        check_name(to)?;
        let id = {
            let manifest = main.manifest();
            let (id, ..) =
                known(manifest.layout(), from).ok_or_else(|| unknown(manifest.layout(), from))?;
            if manifest.layout().named(to).is_some() {
                return Err(Error::KeyspaceExists { name: to.to_string() });
            }
            id
        };
        if id == KeyspaceId::DEFAULT {
            return Err(default_stays("renamed"));
        }
        let mut writer = main.commit.writer();
        writer.make_durable(main)?;
        change(main, id, KeyspaceChange::Renamed { name: to.to_string() })?;
        follow_edit(main);
        Ok(())
    }

    /// Drops a key space and all of its entries.
    pub(crate) fn drop_named(&self, main: &Engine, name: &str) -> Result<()> {
        let mut open = lock(&self.open);
        let known = known(main.manifest().layout(), name);
        let (id, ..) = known.ok_or_else(|| unknown(main.manifest().layout(), name))?;
        if id == KeyspaceId::DEFAULT {
            return Err(default_stays("dropped"));
        }
        let engine = open.get(&id).cloned();
        {
            // The lock ensures that no group is being written.
            let mut writer = main.commit.writer();
            writer.make_durable(main)?;
            let mut installer = engine.as_ref().map(|engine| engine.installer());
            change(main, id, KeyspaceChange::Dropped)?;
            follow_edit(main);
            writer.note_leaving(main);
            if let Some(engine) = &engine {
                engine.drop_tree(name);
            }
            if let (Some(engine), Some(installer)) = (&engine, &mut installer) {
                installer.end_doubt(engine);
            }
            drop(installer);
            main.commit.trees.remove(id);
        }
        main.commit.locks.end_waits(Some(id));
        open.remove(&id);
        drop(open);
        if let Some(engine) = engine {
            engine.end_work();
            engine.abandon_work();
            engine.release();
            engine.table_files.values.give_up();
        }
        main.sweep_or_call();
        Ok(())
    }
}

/// Sets the merge operator of an open key space, if the options have one. The key space may have
/// been opened without one, for its data, or with options that it shares. The first operator stays;
/// all must have the same name.
fn give_operator(main: &Engine, engine: &Engine, given: &KeyspaceOptions) -> Result<()> {
    if !given.sets_operator() {
        return Ok(());
    }
    let record =
        main.manifest().layout().keyspaces.get(&engine.keyspace).map(|it| Arc::clone(&it.record));
    let kept = record.map(|record| record.options.clone()).unwrap_or_default();
    let Some((option, new)) = given.operator(&kept, engine.merge_operator.get())? else {
        return Ok(());
    };
    if !new.is_empty() {
        let edit = KeyspaceEdit { options: new, ..KeyspaceEdit::default() };
        append(main, engine.keyspace, edit)?;
    }
    if let Some(operator) = option.operator() {
        engine.merge_operator.get_or_init(|| Arc::clone(operator));
    }
    Ok(())
}

/// Returns the names of all key spaces.
pub(crate) fn names(main: &Engine) -> Vec<String> {
    names_in(main.manifest().layout())
}

fn names_in(layout: &StoreLayout) -> Vec<String> {
    let all = layout.keyspaces.values().inspect(|_| step());
    all.map(|keyspace| keyspace.record.name.clone()).collect()
}

fn known(
    layout: &StoreLayout,
    name: &str,
) -> Option<(KeyspaceId, Arc<KeyspaceRecord>, Arc<Layout>)> {
    let id = layout.named(name)?;
    let keyspace = &layout.keyspaces[&id];
    Some((id, Arc::clone(&keyspace.record), Arc::clone(&keyspace.tree)))
}

fn unknown(layout: &StoreLayout, name: &str) -> Error {
    Error::NoKeyspace { name: name.to_string(), there: names_in(layout) }
}

fn default_stays(what: &str) -> Error {
    let problem = format!("{DEFAULT_NAME} is in every store, and is not {what}");
    Error::Option { option: "keyspace".into(), problem }
}

fn check_name(name: &str) -> Result<()> {
    if (1..=NAME_BYTES_MAX).contains(&name.len()) {
        return Ok(());
    }
    let problem = format!("a name has 1 to {NAME_BYTES_MAX} bytes, and this has {}", name.len());
    Err(Error::Option { option: "keyspace".into(), problem })
}

/// Appends an edit that changes a key space. Requires: the caller is the writer, and all earlier
/// writes are durable.
fn change(main: &Engine, id: KeyspaceId, change: KeyspaceChange) -> Result<()> {
    let edit = KeyspaceEdit { change: Some(change), ..KeyspaceEdit::default() };
    append(main, id, edit).inspect_err(|_| main.commit.trees.doubt())
}

/// If a key space had no log and has one from now on, ends change feeds behind what it has: nothing
/// else would tell of that.
pub(crate) fn end_feeds(
    main: &Engine,
    id: KeyspaceId,
    (had_log, has_log): (bool, bool),
) -> Result<()> {
    if had_log || !has_log {
        return Ok(());
    }
    let mut manifest = main.manifest();
    let layout = manifest.layout();
    let last = layout.tree(id).map(|tree| tree.last_sequence).unwrap_or_default();
    if last <= layout.logs.unlogged {
        return Ok(());
    }
    // Before the edit can be on disk, whatever its outcome.
    main.logs.chain(|chain| chain.note_unlogged(last));
    manifest.append(&StoreEdit { unlogged: Some(last), ..StoreEdit::default() })?;
    drop(manifest);
    follow_edit(main);
    Ok(())
}

/// Appends an edit that changes nothing. Otherwise followers would take the edit before it, which
/// removes something, for refused.
fn follow_edit(main: &Engine) {
    let mut manifest = main.manifest();
    let next_keyspace = Some(manifest.layout().next_keyspace);
    // If this fails, the next edit takes that role.
    let _ = manifest.append(&StoreEdit { next_keyspace, ..StoreEdit::default() });
}

fn append(main: &Engine, id: KeyspaceId, edit: KeyspaceEdit) -> Result<()> {
    main.manifest().append(&StoreEdit { keyspaces: vec![(id, edit)], ..StoreEdit::default() })
}
