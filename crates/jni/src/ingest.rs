//! Bulk loads: Java passes rows, a piece at a time.
//! ```text
//! store <-- one row after the other <-- Pieces <-- byte[] next() of dev.trommel.RowFeeder
//! ```
//! Invariant: if Java throws, nothing is written, and the caller gets that exception.

use jni_sys::{jbyteArray, jint, jlong, jobject};
use trommel::Batch;

use crate::border::Handle;
use crate::bytes::{Cutter, Room};
use crate::env::Env;
use crate::error::{Failure, Outcome};
use crate::reader::Reader;
use crate::sorted::Sorted;

type Row = (Vec<u8>, Vec<u8>);

/// Rows that Java passes, many at once.
struct Pieces {
    env: Env,
    feeder: jobject,
    rows: std::vec::IntoIter<Row>,
    is_done: bool,
}

impl Pieces {
    fn pull(&mut self) -> Outcome<()> {
        let Some(piece) = self.env.next_piece(self.feeder)? else {
            self.is_done = true;
            return Ok(());
        };
        let (mut cutter, mut rows) = (Cutter::new(&piece), Vec::new());
        while !cutter.is_at_end() {
            let (key, value) = cutter.row()?;
            rows.push((key.to_vec(), value.to_vec()));
        }
        self.rows = rows.into_iter();
        Ok(())
    }
}

impl Iterator for Pieces {
    type Item = Result<Row, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.rows.len() == 0 && !self.is_done {
            if let Err(failure) = self.pull() {
                self.is_done = true;
                return Some(Err(failure));
            }
        }
        self.rows.next().map(Ok)
    }
}

native! {
    /// Returns how many rows were written.
    "ingest" fn ingest(env, of: Handle<Reader>, feeder: jobject) -> jlong {
        if feeder.is_null() {
            return Err(Failure::argument("the feeder is null"));
        }
        let rows = Pieces { env, feeder, rows: Vec::new().into_iter(), is_done: false };
        Ok(of.get()?.keyspace()?.try_ingest(rows)? as jlong)
    }
}

native! {
    /// Ingests a batch of puts and deletes in any order. Returns how many keys were put.
    "ingestBatch" fn ingest_batch(
        env,
        of: Handle<Reader>,
        writes: jbyteArray,
        len: jint,
    ) -> jlong {
        let mut room = Room::new();
        let (reader, writes) = (of.get()?, env.bytes(&mut room, writes, len)?);
        let (keyspace, sorted) = (reader.keyspace()?, Sorted::of(writes)?);
        if !sorted.deletes.is_empty() {
            // Deletes go first: a crash may leave keys without a value, but never with an older
            // one.
            let mut batch = Batch::new();
            batch.to(keyspace);
            for key in &sorted.deletes {
                batch.delete(key);
            }
            reader.db.write(batch)?;
        }
        Ok(keyspace.ingest(sorted.puts)? as jlong)
    }
}
