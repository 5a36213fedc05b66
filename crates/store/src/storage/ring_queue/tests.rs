//! The common behaviour of all read queues: the ring and its safe twins.

use std::collections::HashMap;
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::storage::disk::Disk;
use crate::storage::io_mode::{Access, Overlap};
use crate::storage::read_queue::{ReadBuffer, one_by_one};
use crate::storage::traits::{Folder, Storage};

struct Files {
    _folder: tempfile::TempDir,
    files: Arc<dyn Folder>,
    bytes: Vec<u8>,
}

impl Files {
    fn new(len: usize) -> Files {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let files = Disk.open_folder(folder.path()).unwrap();
        let bytes: Vec<u8> = (0..len).map(|at| (at * 7 + at / 250) as u8).collect();
        files.create("file").unwrap().append(&bytes).unwrap();
        Files { _folder: folder, files, bytes }
    }

    /// Opens the file in all ways: buffered and direct, with a descriptor and without.
    fn open(&self) -> Vec<Arc<dyn ReadAt>> {
        let open = |direct, overlap| {
            self.files.open_with("file", Access { direct, overlap, mapped: false }).unwrap()
        };
        let memory = crate::storage::memory::Memory::new();
        memory.put_file(Path::new("file"), self.bytes.clone());
        vec![
            open(false, Overlap::OneByOne),
            open(true, Overlap::OneByOne),
            open(false, Overlap::Ring),
            open(true, Overlap::Pool),
            memory.open_folder(Path::new("")).unwrap().open("file").unwrap(),
        ]
    }

    fn is_right(&self, offset: u64, len: usize, read: &io::Result<ReadBuffer>) -> bool {
        let there = self.bytes.get(offset as usize..).and_then(|rest| rest.get(..len));
        match (read, there) {
            (Ok(read), Some(there)) => **read == *there,
            (Ok(read), None) => len == 0 && read.is_empty(),
            (Err(error), None) => error.kind() == io::ErrorKind::UnexpectedEof,
            (Err(_), Some(_)) => false,
        }
    }
}

/// Makes a queue of each kind. (The ring is missing where it is not allowed.)
fn queues(depth: usize) -> Vec<Box<dyn ReadQueue>> {
    let mut queues: Vec<Box<dyn ReadQueue>> = vec![one_by_one(), Box::new(PoolQueue::new(depth))];
    if is_allowed() {
        let mut failing = RingQueue::new(depth).unwrap();
        queues.push(Box::new(RingQueue::new(depth).unwrap()));
        failing.fail_over();
        queues.push(Box::new(failing));
    }
    queues
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn every_read_is_collected_once_and_is_right(
        reads in prop::collection::vec((0u64..40_000, 0usize..9000, 0usize..5, any::<bool>()), 1..120),
        depth in 1usize..20,
    ) {
        let files = Files::new(33_333);
        for mut queue in queues(depth) {
            let open = files.open();
            let mut under_way = HashMap::new();
            let check = |done: Completed, under_way: &mut HashMap<u64, (u64, usize)>| {
                let (offset, len) = under_way.remove(&done.tag).expect("it was submitted, and collected once");
                assert!(files.is_right(offset, len, &done.bytes), "{len} bytes at {offset}");
            };
            for (tag, (offset, len, file, collects)) in (0u64..).zip(&reads) {
                under_way.insert(tag, (*offset, *len));
                queue.submit(tag, Arc::clone(&open[*file]), *offset, *len);
                if *collects && let Some(done) = queue.collect(tag % 2 == 0) {
                    check(done, &mut under_way);
                }
            }
            while let Some(done) = queue.collect(true) {
                check(done, &mut under_way);
            }
            prop_assert!(under_way.is_empty());
            prop_assert!(queue.collect(true).is_none() && queue.collect(false).is_none());
        }
    }
}

#[test]
fn a_queue_may_be_dropped_at_any_time() {
    let files = Files::new(1 << 20);
    for count in [1, 7, 100] {
        for mut queue in queues(16) {
            let open = files.open();
            for tag in 0..count {
                queue.submit(tag, Arc::clone(&open[(tag % 4) as usize]), tag * 4096, 9000);
            }
            drop(queue.collect(count == 7));
        }
    }
}

#[test]
fn files_stay_open_until_they_are_read() {
    let files = Files::new(100_000);
    for mut queue in queues(4) {
        for tag in 0..40 {
            let file = files.open().swap_remove((tag % 4) as usize);
            queue.submit(tag, file, tag * 2000, 2000);
        }
        let mut count = 0;
        while let Some(done) = queue.collect(true) {
            assert!(files.is_right(done.tag * 2000, 2000, &done.bytes));
            count += 1;
        }
        assert_eq!(count, 40);
    }
}

#[test]
fn a_queue_may_go_on_in_another_thread_when_the_first_has_ended() {
    let files = Files::new(400_000);
    for mut queue in queues(16) {
        let open = files.open();
        let mut queue = std::thread::scope(|scope| {
            let submit = || {
                (0..60).for_each(|tag| queue.submit(tag, Arc::clone(&open[1]), tag * 4096, 5000));
                queue
            };
            scope.spawn(submit).join().unwrap()
        });
        let mut count = 0;
        while let Some(done) = queue.collect(true) {
            assert!(files.is_right(done.tag * 4096, 5000, &done.bytes), "{:?}", done.bytes);
            count += 1;
        }
        assert_eq!(count, 60);
    }
}

#[test]
fn a_ring_that_fails_leaves_its_reads_to_the_pool() {
    let files = Files::new(100_000);
    let Ok(mut queue) = RingQueue::new(4) else { return };
    for tag in 0..20 {
        queue.submit(tag, files.open().swap_remove(1), tag * 3000, 4000);
    }
    let first = queue.collect(true).expect("under way");
    queue.fail_over();
    let mut tags = vec![first.tag];
    while let Some(done) = queue.collect(true) {
        assert!(files.is_right(done.tag * 3000, 4000, &done.bytes));
        tags.push(done.tag);
    }
    tags.sort_unstable();
    assert!(tags.into_iter().eq(0..20));
    assert!(queue.ring.is_none() && queue.waiting.is_empty());
}

#[test]
fn many_reads_of_a_file_are_as_one_by_one() {
    let files = Files::new(50_000);
    for file in files.open() {
        for count in [0, 1, 2, 130] {
            let places = (0..count).map(|nth| (nth * 379 % 40_000, (nth * 31 % 5000) as usize));
            let mut buffers: Vec<Vec<u8>> = places.clone().map(|(_, len)| vec![0; len]).collect();
            let buffers_of = places.clone().map(|(offset, _)| offset).zip(&mut buffers);
            let mut reads: Vec<(u64, &mut [u8])> =
                buffers_of.map(|(offset, buffer)| (offset, &mut buffer[..])).collect();
            file.read_many(&mut reads).unwrap();
            for ((offset, len), buffer) in places.zip(&buffers) {
                assert!(*buffer == files.bytes[offset as usize..][..len], "{len} at {offset}");
            }
        }
        let (mut one, mut two, mut three) = ([0; 10], [0; 10], [0; 10]);
        let mut reads = [(0, &mut one[..]), (49_995, &mut two[..]), (20, &mut three[..])];
        let wrong = file.read_many(&mut reads).unwrap_err();
        assert_eq!(wrong.kind(), io::ErrorKind::UnexpectedEof);
        // Nothing is left in flight: the next reads get their own bytes.
        let mut reads = [(1000, &mut one[..]), (2000, &mut two[..])];
        file.read_many(&mut reads).unwrap();
        assert!(one == files.bytes[1000..1010] && two == files.bytes[2000..2010]);
    }
}
