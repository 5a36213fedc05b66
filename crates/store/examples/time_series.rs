//! Time series: points by sensor and time, ranges that are often empty, and old points that go.
//! ```text
//! key    sensor u32 | milliseconds u64, both big-endian:
//!        so points of a sensor lie beside each other, in time
//! ```
//! A dashboard asks "anything between ten and eleven?" far more often than there is something. The
//! guard answers such a question from memory.
//! ```text
//! cargo run --release -p trommel --example time_series
//! ```

use std::time::Duration;

use trommel::{Db, Options};

const HOUR: u64 = 3_600_000;
const SENSORS: u32 = 50;

fn key(sensor: u32, time: u64) -> [u8; 12] {
    let mut key = [0; 12];
    key[..4].copy_from_slice(&sensor.to_be_bytes());
    key[4..].copy_from_slice(&time.to_be_bytes());
    key
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let options = Options::new().write_buffer_bytes(256 << 10);
    let db = Db::open(folder.path(), options)?;
    // Each sensor sends a burst in every fifth hour.
    for hour in (0..200).step_by(5) {
        for sensor in 0..SENSORS {
            let start = (hour + u64::from(sensor % 5)) * HOUR;
            for point in 0..10 {
                let value = (f64::from(sensor) + point as f64 / 10.0).to_le_bytes();
                db.put(key(sensor, start + point * 1000), value)?;
            }
        }
    }
    // Alarms are kept for a day.
    db.put_ttl(key(SENSORS, 7 * HOUR), "too hot", Duration::from_secs(86_400))?;
    db.flush()?;

    let (mut empty, mut points) = (0, 0);
    for hour in 0..200 {
        for sensor in 0..SENSORS {
            let found = db.range(key(sensor, hour * HOUR)..key(sensor, (hour + 1) * HOUR)).count();
            points += found;
            empty += usize::from(found == 0);
        }
    }
    let seeks = db.stats()?.closed_seek;
    println!("{empty} of {} ranges were empty, {points} points in the others", seeks.queries);
    println!("{:.2} blocks read for each range", seeks.blocks_read as f64 / seeks.queries as f64);
    assert_eq!((empty, points), (8_000, 20_000));

    // The oldest half of a sensor goes with one write, however many points it has.
    db.delete_range(key(3, 0), key(3, 100 * HOUR))?;
    assert_eq!(db.range(key(3, 0)..key(4, 0)).count(), 200);
    Ok(())
}
