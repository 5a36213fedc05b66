//! Options by name, with values of Python.
//! ```text
//! write_buffer_bytes=16 << 20    "16777216"       sync="always"       "always"
//! monkey=True                    "true"           stop_runs=None      "auto", else "none"
//! ```
//! Invariant: each value goes through its text, which the store reads.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};
use trommel::{KeyspaceOptions, Options};

use crate::errors;

/// The name that is no option, but says with which ones to begin.
const PRESET: &str = "preset";

/// The options of a store.
pub(crate) fn of_store(given: Option<&Bound<'_, PyDict>>) -> PyResult<Options> {
    let Some(given) = given else { return Ok(Options::new()) };
    let py = given.py();
    let mut options = match given.get_item(PRESET)? {
        Some(name) => {
            let name: String = name.extract()?;
            Options::preset(&name.replace('_', "-")).map_err(|error| errors::of(py, &error))?
        }
        None => Options::new(),
    };
    set_each(given, |name, text| options.set(name, text))?;
    Ok(options)
}

/// The options of a key space.
pub(crate) fn of_keyspace(given: Option<&Bound<'_, PyDict>>) -> PyResult<KeyspaceOptions> {
    let mut options = KeyspaceOptions::new();
    if let Some(given) = given {
        set_each(given, |name, text| options.set(name, text))?;
    }
    Ok(options)
}

fn set_each(
    given: &Bound<'_, PyDict>,
    mut set: impl FnMut(&str, &str) -> trommel::Result<()>,
) -> PyResult<()> {
    let py = given.py();
    for (name, value) in given {
        let name: String = name.extract()?;
        if name == PRESET {
            continue;
        }
        if value.is_none() {
            // The one is that of options that need not be set, the other that of names.
            let is_set = ["auto", "none"].into_iter().any(|text| set(&name, text).is_ok());
            if !is_set {
                let message = format!("option {name}: None is no value of it");
                return Err(errors::option(py, &message));
            }
            continue;
        }
        set(&name, &text_of(&name, &value)?).map_err(|error| errors::of(py, &error))?;
    }
    Ok(())
}

fn text_of(name: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    // A switch is a number, too: it comes first.
    if let Ok(switch) = value.cast::<PyBool>() {
        return Ok(switch.is_true().to_string());
    }
    let has_text = value.is_instance_of::<PyInt>()
        || value.is_instance_of::<PyFloat>()
        || value.is_instance_of::<PyString>();
    if has_text {
        return Ok(value.str()?.to_string());
    }
    if let Ok(seconds) = value.call_method0("total_seconds") {
        return Ok(seconds.str()?.to_string());
    }
    let kind = value.get_type().name()?;
    Err(errors::wrong_type(format!(
        "option {name}: a number, a text, True, False or None is needed, not {kind}"
    )))
}

/// Every option: its name, what kind of text it has, what it may be, its default, what it does.
#[pyfunction]
pub(crate) fn options() -> Vec<(String, String, String, String, String)> {
    let own = |text: &str| text.trim().to_owned();
    let info = |it: &trommel::options::OptionInfo| {
        (own(it.name), own(it.kind), own(it.limits), it.default_text(), own(it.help))
    };
    Options::list().iter().map(info).collect()
}
