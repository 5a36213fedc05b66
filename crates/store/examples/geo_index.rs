//! Geo index: points by the Morton code of their place, and boxes of the map as ranges of codes.
//! ```text
//! key    bits of longitude and latitude in turn, 64 together, big-endian | id
//! box    a few ranges of codes, each of them a square of the map; most are empty
//! ```
//! ```text
//! cargo run --release -p trommel --example geo_index
//! ```

use trommel::{Db, Options};

/// Squares of a map of 2^32 by 2^32 places that are as fine as this are not cut further.
const FINEST_BITS: u32 = 23;

/// Every bit of `value` with a zero before it.
fn spread(value: u32) -> u64 {
    (0..32).fold(0, |code, bit| code | (u64::from(value >> bit & 1) << (2 * bit)))
}

fn morton(x: u32, y: u32) -> u64 {
    spread(x) << 1 | spread(y)
}

/// The corner of a square and its side, which is a power of two.
type Square = ((u32, u32), u32);

/// The squares that cover the box from `low` to `high`, both included.
fn squares(low: (u32, u32), high: (u32, u32), ((x, y), bits): Square, found: &mut Vec<Square>) {
    let last = |start: u32| start + ((1u64 << bits) - 1) as u32;
    if x > high.0 || y > high.1 || last(x) < low.0 || last(y) < low.1 {
        return;
    }
    let inside = x >= low.0 && y >= low.1 && last(x) <= high.0 && last(y) <= high.1;
    if inside || bits == FINEST_BITS {
        found.push(((x, y), bits));
        return;
    }
    let half = 1 << (bits - 1);
    for corner in [(x, y), (x + half, y), (x, y + half), (x + half, y + half)] {
        squares(low, high, (corner, bits - 1), found);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let options = Options::new().write_buffer_bytes(128 << 10);
    let db = Db::open(folder.path(), options)?;
    // Places that lie in towns: 200 of them, with 100 points each.
    let mut state = 7u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 32) as u32
    };
    let mut points = Vec::new();
    for _ in 0..200 {
        let town = (random(), random());
        for _ in 0..100 {
            let near = |center: u32, by: u32| center.saturating_add(by >> 12);
            points.push((near(town.0, random()), near(town.1, random())));
        }
    }
    for (id, &(x, y)) in points.iter().enumerate() {
        let key = [&morton(x, y).to_be_bytes()[..], &(id as u32).to_be_bytes()].concat();
        db.put(key, [x.to_be_bytes(), y.to_be_bytes()].concat())?;
    }
    db.flush()?;

    let side = 1 << 26;
    let mut all = 0;
    for _ in 0..200 {
        let low = (random().min(u32::MAX - side), random().min(u32::MAX - side));
        let high = (low.0 + side, low.1 + side);
        let mut cover = Vec::new();
        squares(low, high, ((0, 0), 32), &mut cover);
        let is_inside =
            |x: u32, y: u32| (low.0..=high.0).contains(&x) && (low.1..=high.1).contains(&y);
        let mut found = 0;
        for ((x, y), bits) in cover {
            let first = morton(x, y);
            let last = first | ((1u128 << (2 * bits)) - 1) as u64;
            let upper = [&last.to_be_bytes()[..], &[0xff; 5]].concat();
            for entry in db.range(first.to_be_bytes().to_vec()..upper) {
                let (_, place) = entry?;
                let (x, y) = place.split_at(4);
                let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().expect("four"));
                found += usize::from(is_inside(number(x), number(y)));
            }
        }
        assert_eq!(found, points.iter().filter(|&&(x, y)| is_inside(x, y)).count());
        all += found;
    }
    let seeks = db.stats()?.closed_seek;
    println!("200 boxes, {all} points in them, {} ranges of codes", seeks.queries);
    println!("{:.3} blocks read for each range", seeks.blocks_read as f64 / seeks.queries as f64);
    Ok(())
}
