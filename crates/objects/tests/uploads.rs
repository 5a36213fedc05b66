//! Uploads in parts of which a call fails.
//! ```text
//! asked     begin  part  part  part  complete       each one fails, and the abort behind it, too
//! listed    nothing, or what was there before       then all of the new object
//! ```
//! Invariant: under a name is a whole object, or none.

mod faulty;

use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use faulty::{Call, Faulty};
use trommel::backup::{Backups, ObjectStore};
use trommel::{Db, Options};
use trommel_objects::CloudObjects;

const NAME: &str = "noise";
/// Three parts.
const BYTES: usize = (16 << 20) + 5;
/// What an upload of so many asks for.
const ALL: [Call; 5] = [Call::Begin, Call::Part, Call::Part, Call::Part, Call::Complete];

/// What a service was asked for of uploads.
#[derive(Default)]
struct Uploads {
    calls: Vec<Call>,
    /// The places of those that it refuses.
    refused: Range<usize>,
    /// Whether the answer of a completion is lost.
    loses_answers: bool,
}

impl Uploads {
    fn ask(&mut self, call: Call) -> object_store::Result<()> {
        match call {
            Call::Begin | Call::Part | Call::Complete | Call::Abort => {}
            Call::Completed if self.loses_answers => return Err(call.refused("no answer")),
            _ => return Ok(()),
        }
        self.calls.push(call);
        let is_refused = self.refused.contains(&(self.calls.len() - 1));
        if is_refused { Err(call.refused("reduce your request rate")) } else { Ok(()) }
    }
}

/// A service, and its objects.
struct World {
    uploads: Arc<Mutex<Uploads>>,
    objects: CloudObjects,
}

impl World {
    fn new() -> World {
        let uploads = Arc::<Mutex<Uploads>>::default();
        let shared = Arc::clone(&uploads);
        let store = Faulty::new(move |call| shared.lock().expect("no panic").ask(call));
        let objects = CloudObjects::new(Arc::new(store), "stores/words").expect("a prefix");
        World { uploads, objects }
    }

    fn uploads(&self) -> MutexGuard<'_, Uploads> {
        self.uploads.lock().expect("no panic")
    }

    /// From now on calls count anew, and these are refused.
    fn refuse(&self, refused: Range<usize>) {
        *self.uploads() = Uploads { refused, ..Uploads::default() };
    }

    fn put(&self, bytes: &[u8]) -> io::Result<()> {
        self.objects.put(NAME, BYTES as u64, &mut &*bytes)
    }

    /// All that is there is this object, or nothing.
    fn has(&self, expected: Option<&[u8]>, what: &str) {
        let listed = self.objects.list("").expect("lists");
        let Some(expected) = expected else {
            assert!(listed.is_empty(), "{what}: {listed:?}");
            let error = self.objects.get(NAME).map(drop).expect_err("it is not there");
            assert_eq!(error.kind(), ErrorKind::NotFound, "{what}");
            return;
        };
        assert_eq!(listed, [(NAME.to_string(), expected.len() as u64)], "{what}");
        let (mut reader, mut found) = (self.objects.get(NAME).expect("it is there"), Vec::new());
        reader.read_to_end(&mut found).expect("reads");
        assert!(found == expected, "{what}: other bytes");
    }
}

/// Bytes that do not repeat soon.
fn noise(seed: u8) -> Vec<u8> {
    (0..BYTES as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8 ^ seed).collect()
}

#[test]
fn an_upload_of_which_a_call_fails_changes_nothing_and_the_next_one_is_there() {
    let (old, new) = (noise(1), noise(2));
    for (failed, call) in ALL.into_iter().enumerate() {
        for (aborts, before) in [(true, None), (false, None), (false, Some(&old[..]))] {
            let what = format!("call {failed}, {call:?}, aborts: {aborts}");
            let world = World::new();
            before.into_iter().for_each(|before| world.put(before).expect("puts"));
            // The call behind it is the abort.
            let refused = if aborts { 1 } else { 2 };
            world.refuse(failed..failed + refused);
            let error = world.put(&new).expect_err("a call was refused");
            assert!(error.to_string().contains(&format!("{call:?}: reduce")), "{what}: {error}");
            let abort = (failed > 0).then_some(Call::Abort);
            let expected: Vec<Call> = ALL[..=failed].iter().copied().chain(abort).collect();
            assert_eq!(world.uploads().calls, expected, "{what}");
            world.has(before, &what);
            world.refuse(0..0);
            world.put(&new).expect("puts");
            assert_eq!(world.uploads().calls, ALL, "{what}, again");
            world.has(Some(&new), &what);
        }
    }
}

#[test]
fn a_service_that_throttles_takes_an_object_once_it_is_asked_seldom_enough() {
    let (world, new) = (World::new(), noise(1));
    // The last part of the first upload, its abort, and the beginnings of three others.
    world.refuse(3..8);
    let mut throttled = 0;
    while let Err(error) = world.put(&new) {
        throttled += 1;
        assert!(error.to_string().contains("reduce your request rate"), "{error}");
        world.has(None, &format!("throttled {throttled} times"));
    }
    assert_eq!(throttled, 4);
    assert_eq!(world.uploads().calls[8..], ALL);
    world.has(Some(&new), "at last");
}

/// Who puts an object cannot know: then it is there as a whole.
#[test]
fn a_completion_whose_answer_is_lost_has_left_all_of_the_object() {
    let (world, new) = (World::new(), noise(1));
    world.uploads().loses_answers = true;
    world.put(&new).expect_err("the answer is lost");
    assert_eq!(world.uploads().calls.last(), Some(&Call::Abort));
    world.has(Some(&new), "without an answer");
    world.refuse(0..0);
    world.put(&new).expect("puts");
    world.has(Some(&new), "again");
}

#[test]
fn a_source_that_ends_early_leaves_no_object() {
    let (world, new) = (World::new(), noise(1));
    let error = world.put(&new[..BYTES - 1]).expect_err("a byte is missing");
    assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
    let expected = [Call::Begin, Call::Part, Call::Part, Call::Abort];
    assert_eq!(world.uploads().calls, expected);
    world.has(None, "it has ended early");
}

/// A value that is apart makes an object of three parts.
#[test]
fn a_backup_of_which_an_upload_fails_is_no_generation_and_the_next_one_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options::new().compression(false);
    let db = Db::open(folder.path().join("db"), options).expect("opens");
    db.put("noise", noise(1)).expect("puts");
    let World { uploads, objects } = World::new();
    let backups = Backups::new(objects);
    for failed in 0..ALL.len() {
        let refusing = Uploads { refused: failed..failed + 2, ..Uploads::default() };
        *uploads.lock().expect("no panic") = refusing;
        backups.back_up(&db).expect_err("a call was refused");
        assert!(backups.generations().expect("lists").is_empty(), "call {failed}");
    }
    *uploads.lock().expect("no panic") = Uploads::default();
    let made = backups.back_up(&db).expect("backs up");
    assert_eq!(uploads.lock().expect("no panic").calls, ALL);
    assert_eq!(backups.generations().expect("lists"), std::slice::from_ref(&made));
    assert!(backups.verify(made.number).expect("verifies").damage.is_empty());
    backups.restore(made.number, folder.path().join("restored")).expect("restores");
    let restored = Db::open(folder.path().join("restored"), Options::new()).expect("opens");
    assert!(restored.get("noise").expect("reads").expect("it is there") == noise(1));
}
