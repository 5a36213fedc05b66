//! The image of a global range filter: as a part by itself, and as the file of a store.
//! ```text
//! input   forge u8: 0 the checksum is left alone, else put right | bytes of the image
//!         2, 3: changes of a small image (`merged.rs`), codes as shapes, as runs
//! ```
//! Invariant: reading never panics, whatever the checksum; a part that is read writes the same
//! image. Only a part whose checksum was not forged is asked (see the head of `grf/image.rs`); the
//! store finds every other one out by the checksum in its manifest, and answers without it.

use trommel::GuardKind;
use trommel::storage::Storage;
use trommel_filters::{Codes, KeyRange, Part, Query};

use crate::{ask, frame, merged, seeds};

pub(crate) fn body(input: &[u8]) {
    let [forge, bytes @ ..] = input else { return };
    if let 2 | 3 = forge {
        return merged::body(usize::from(forge - 2), bytes);
    }
    let mut image = bytes.to_vec();
    if *forge != 0 {
        frame::mend_image(&mut image);
    }
    if let Ok(part) = Part::read_image(&image) {
        let mut again = Vec::new();
        part.write_image(&mut again);
        assert!(again == image, "an image that is written in two ways");
        if *forge == 0 {
            ask_part(&part);
        }
    }
    in_a_store(&image);
}

fn ask_part(part: &Part) {
    let mut codes = Codes::new();
    for key in [&b""[..], b"key 020", b"\xff\xff"] {
        part.candidates(&Query::Point(key), &mut codes);
        let range = KeyRange::new(key, Some(b"\xff\xff\xff")).expect("in order");
        part.candidates(&Query::Range(range), &mut codes);
        let count = part.approximate_count(&range);
        assert!(count.least <= count.most, "{count:?}");
    }
    let mut cursor = part.cursor(&[]);
    let codes = std::iter::from_fn(|| cursor.next_due(None, |_| true)).take(1 << 20).count();
    assert!(codes < 1 << 20, "a cursor without an end");
}

/// Under the store's own manifest, which knows the length and the checksum of another image.
fn in_a_store(image: &[u8]) {
    let small = seeds::small_store(GuardKind::Grf);
    let disk = ask::disk_of(&small.files);
    let names = disk.list(std::path::Path::new(ask::DIR)).expect("the folder is there");
    let name = names.iter().find(|name| name.ends_with(".filter")).expect("it has an image");
    disk.put_file(ask::path(name), image);
    let read_back = ask::ask(&disk, GuardKind::Grf).expect("an image stops nothing");
    assert_eq!(read_back.contents, small.contents, "answers by another image");
    ask::dump_all(&disk, &ask::path(name));
}
