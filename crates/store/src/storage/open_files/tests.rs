//! Tests of open files, over a simulated disk that counts handles.

use super::*;
use crate::storage::memory::Memory;

/// Makes a disk with files of one byte, their numbers, and opens these files.
fn files(count: u8, max: usize) -> (Memory, Arc<OpenFiles>, Vec<Arc<dyn ReadAt>>) {
    let disk = Memory::new();
    (0..count).for_each(|number| disk.put_file(format!("db/{number}"), [number]));
    let open = OpenFiles::new(OpenFolder::on(&disk, "db"), Access::default(), max);
    let file = |number: u8| open.file(&number.to_string()).expect("opens").0;
    let list = (0..count).map(file).collect();
    (disk, open, list)
}

fn read(file: &Arc<dyn ReadAt>) -> u8 {
    file.read(0, 1).expect("reads")[0]
}

#[test]
fn no_more_are_open_than_may_be_and_what_is_read_often_stays_open() {
    for max in [2usize, 3, 9, 10] {
        let (disk, open, list) = files(10, max);
        let rounds = 5;
        for _ in 0..rounds {
            for (number, file) in list.iter().enumerate().skip(1) {
                assert_eq!((read(file), read(&list[0])), (number as u8, 0));
            }
        }
        let (handles, stats) = (disk.handles(), open.stats());
        assert_eq!((handles.open, handles.most), (max, max));
        assert_eq!((stats.open, stats.max), (max as u64, max as u64));
        // The others take turns if there are too many. The first one may be reopened once.
        let most = if max == 10 { 0 } else { rounds * 9 + 1 };
        assert!(stats.reopened <= most, "{max}: {stats:?}");
        drop(list);
        assert_eq!((disk.handles().open, open.stats().open), (0, 0));
    }
}

#[test]
fn one_handle_is_enough() {
    let (disk, _open, list) = files(5, 1);
    list.iter().rev().zip((0..5).rev()).for_each(|(file, number)| assert_eq!(read(file), number));
    assert!(list[0].opened().is_err(), "rings have none then");
    assert_eq!(disk.handles().most, 1);
}

// Once, a waiting thread was notified only of closed files, not of files that were no longer read.
// So each wait took its full time.
#[test]
fn who_waits_for_a_file_is_told_when_it_is_read_no_more() {
    let notified_in_time = |_: &u32| {
        let (disk, open, list) = files(2, 1);
        let file = TableFile::closed(&open, "0");
        while open.close_idle() {}
        let (begun, end) = (std::sync::Barrier::new(2), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let blocks = |_: &dyn ReadAt| {
                    begun.wait();
                    while !end.load(Ordering::SeqCst) {
                        std::thread::yield_now();
                    }
                    Ok(())
                };
                file.with(blocks).expect("reads");
            });
            begun.wait();
            scope.spawn(|| assert_eq!(read(&list[1]), 1));
            while open.waiting.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            end.store(true, Ordering::SeqCst);
        });
        disk.handles().most == 1
    };
    // Occasionally a busy machine takes as long as the wait lasts.
    let rounds = 40;
    let in_time = (0..rounds).filter(notified_in_time).count();
    assert!(in_time > 10, "{in_time} of {rounds}");
}

#[test]
fn rings_have_half_of_the_files_and_give_them_back() {
    let (disk, open, list) = files(10, 5);
    let lend = |number: usize| list[number].opened().map(|file| file.expect("it stands for one"));
    let (first, second) = (lend(0).expect("one"), lend(1).expect("two"));
    let again = lend(0).expect("the first one again");
    for number in 2..10 {
        assert_eq!(lend(number).map(drop).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
    // Other readers use the rest, and close none of these.
    list.iter().zip(0..).for_each(|(file, number)| assert_eq!(read(file), number));
    assert_eq!((read(&first), read(&second), disk.handles().most), (0, 1, 5));
    drop(first);
    assert!(lend(2).is_err(), "someone else has the first one");
    drop(again);
    assert_eq!(read(&lend(2).expect("there is room again")), 2);
    drop(second);
    assert!(open.lent.load(Ordering::SeqCst) == 0);
}

#[test]
fn who_reads_keeps_a_file_that_is_closed_and_removed() {
    let (disk, open, list) = files(4, 2);
    let lent = list[3].opened().expect("one").expect("it stands for one");
    list[..3].iter().zip(0..).for_each(|(file, number)| assert_eq!(read(file), number));
    while open.close_idle() {}
    assert_eq!(disk.handles().open, 1, "the one that is read");
    disk.remove("db/3".as_ref()).expect("removes");
    assert_eq!((read(&lent), read(&list[3])), (3, 3));
    drop(lent);
    while open.close_idle() {}
    assert!(list[3].read(0, 1).is_err(), "nobody had it");
    assert_eq!(read(&list[0]), 0);
}

#[test]
fn threads_share_few_files() {
    const THREADS: usize = 8;
    let (disk, open, list) = files(40, 3);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let list = &list;
            scope.spawn(move || {
                for turn in 0..400 {
                    let number = (turn * (thread + 3)) % list.len();
                    assert_eq!(read(&list[number]), number as u8);
                }
            });
        }
    });
    // A thread that has waited in vain opens one nevertheless.
    assert!(disk.handles().most <= 3 + THREADS, "{:?}", disk.handles());
    assert_eq!(disk.handles().open as u64, open.stats().open);
    assert!(open.stats().open <= 3 + THREADS as u64);
}

#[test]
fn places_of_tables_that_are_gone_do_not_pile_up() {
    let (_disk, open, list) = files(3, usize::MAX);
    for _ in 0..1000 {
        drop(open.file("1").expect("opens"));
    }
    assert!(lock(&open.clock).len() < 100 && open.stats().open == 3);
    drop(list);
}
