//! Writes the seeds of the corpus: `cargo run -p trommel-fuzzing --example seeds -- fuzz/corpus`

use std::path::Path;

fn main() -> std::io::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "fuzz/corpus".to_string());
    let seeds = trommel_fuzzing::seeds();
    for (target, name, bytes) in &seeds {
        let folder = Path::new(&folder).join(target);
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join(name), bytes)?;
    }
    println!("{} seeds in {folder}", seeds.len());
    Ok(())
}
