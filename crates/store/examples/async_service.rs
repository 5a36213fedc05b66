//! An asynchronous service: reads go through one queue, writes to threads that may block.
//! ```text
//! task --get--> channel --> reader thread: Queue, many reads under way --> oneshot --> task
//! task --put--> spawn_blocking: the write waits for its log, and its group for one sync
//! ```
//! Prints what a get costs through the channel, beside a plain one.
//! ```text
//! cargo run --release -p trommel --example async_service
//! ```

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;
use trommel::{Answer, Db, Options, Result, Value};

const KEYS: u64 = 20_000;
const TASKS: u64 = 16;

/// Reads of the disk that are under way at once.
const DEPTH: usize = 64;

/// A get, and where its answer goes.
struct Request {
    key: Vec<u8>,
    reply: oneshot::Sender<Result<Option<Value>>>,
}

/// A handle for tasks: a clone for each.
#[derive(Clone)]
struct AsyncDb {
    db: Db,
    requests: mpsc::Sender<Request>,
}

impl AsyncDb {
    fn new(db: Db) -> AsyncDb {
        let (requests, receiver) = mpsc::channel(1024);
        let reader = db.clone();
        // It ends when the last handle is gone.
        std::thread::spawn(move || serve(&reader, receiver));
        AsyncDb { db, requests }
    }

    async fn get(&self, key: impl Into<Vec<u8>>) -> Result<Option<Value>> {
        let (reply, answer) = oneshot::channel();
        let request = Request { key: key.into(), reply };
        self.requests.send(request).await.expect("the reader lives as long as its handles");
        answer.await.expect("each request is answered")
    }

    async fn put(&self, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Result<()> {
        let (db, key, value) = (self.db.clone(), key.into(), value.into());
        spawn_blocking(move || db.put(key, value)).await.expect("no panic")
    }
}

/// Takes requests while there are some, and waits for the disk when there are none.
fn serve(db: &Db, mut requests: mpsc::Receiver<Request>) {
    let (mut queue, mut replies, mut tag) = (db.queue(DEPTH), HashMap::new(), 0);
    loop {
        let idle = replies.is_empty();
        let request = if idle { requests.blocking_recv() } else { requests.try_recv().ok() };
        let answered = match request {
            Some(Request { key, reply }) => {
                tag += 1;
                replies.insert(tag, reply);
                queue.submit_get(key, tag);
                queue.poll()
            }
            None if idle => return,
            None => queue.wait(),
        };
        if let Some(answered) = answered
            && let Answer::Value(value) = answered.answer
            && let Some(reply) = replies.remove(&answered.tag)
        {
            // Nobody waits for it if its task was cancelled.
            let _ = reply.send(value);
        }
    }
}

/// Every other key is missing.
async fn ask(db: AsyncDb, task: u64) -> Result<u64> {
    let mut found = 0;
    for number in (task..2 * KEYS).step_by(TASKS as usize) {
        found += u64::from(db.get(number.to_be_bytes()).await?.is_some());
    }
    Ok(found)
}

fn each(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6 / (2 * KEYS) as f64
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let db = Db::open(folder.path(), Options::new().write_buffer_bytes(1 << 20))?;
    (0..KEYS).try_for_each(|number| db.put((2 * number).to_be_bytes(), [7; 100]))?;
    db.flush()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build()?;
    let store = AsyncDb::new(db.clone());
    let begun = Instant::now();
    let found = runtime.block_on(async {
        store.put("async", "written").await?;
        assert_eq!(store.get("async").await?.as_deref(), Some(&b"written"[..]));
        let tasks: Vec<_> = (0..TASKS).map(|task| tokio::spawn(ask(store.clone(), task))).collect();
        let mut found = 0;
        for task in tasks {
            found += task.await.expect("no panic")?;
        }
        Ok::<_, trommel::Error>(found)
    })?;
    let through_queue = begun.elapsed();
    assert_eq!(found, KEYS);
    let begun = Instant::now();
    for number in 0..2 * KEYS {
        assert_eq!(db.get(number.to_be_bytes())?.is_some(), number % 2 == 0);
    }
    let plain = each(begun.elapsed());
    println!("{found} keys found by {TASKS} tasks");
    println!(
        "a get through the channel: {:.2} µs; a plain one: {plain:.2} µs",
        each(through_queue)
    );
    Ok(())
}
