//! Options by name and text.
//! ```text
//! list   preset, or an empty text | name | text | name | text | ...
//! ```
//! Invariant: each value is passed as its text, which the store parses.

use jni_sys::{jbyteArray, jint};
use trommel::{KeyspaceOptions, Options};

use crate::bytes::{Cutter, Room, texts};
use crate::error::Outcome;
use crate::library::know_guards;

/// The options of a list, in its order.
struct Given<'b> {
    base: Options,
    set: Vec<(&'b str, &'b str)>,
}

impl<'b> Given<'b> {
    fn of(list: &'b [u8]) -> Outcome<Given<'b>> {
        let mut cutter = Cutter::new(list);
        let preset = if cutter.is_at_end() { "" } else { cutter.text()? };
        let base = if preset.is_empty() { Options::default() } else { Options::preset(preset)? };
        let mut set = Vec::new();
        while !cutter.is_at_end() {
            set.push((cutter.text()?, cutter.text()?));
        }
        Ok(Given { base, set })
    }
}

/// Parses the options of a store.
pub(crate) fn store_options(list: &[u8]) -> Outcome<Options> {
    let Given { mut base, set } = Given::of(list)?;
    set.into_iter().try_for_each(|(name, text)| base.set(name, text))?;
    Ok(base)
}

/// Parses the options of a key space. An option of the whole store is an error.
pub(crate) fn keyspace_options(list: &[u8]) -> Outcome<KeyspaceOptions> {
    if list.is_empty() {
        return Ok(KeyspaceOptions::new());
    }
    let Given { base, set } = Given::of(list)?;
    let mut options = KeyspaceOptions::from(base);
    set.into_iter().try_for_each(|(name, text)| options.set(name, text))?;
    Ok(options)
}

native! {
    /// Throws an exception if the list is malformed or an option is refused.
    "checkOptions" fn check_options(env, list: jbyteArray, len: jint) -> () {
        know_guards();
        let mut room = Room::new();
        store_options(env.bytes(&mut room, list, len)?)?;
        Ok(())
    }
}

native! {
    /// Returns the text of an option: the value set in the list, or the default.
    "optionText" fn option_text(
        env,
        list: jbyteArray,
        len: jint,
        name: jbyteArray,
        name_len: jint,
    ) -> jbyteArray {
        know_guards();
        let (mut list_room, mut name_room) = (Room::new(), Room::new());
        let options = store_options(env.bytes(&mut list_room, list, len)?)?;
        let name = crate::store::text(env, &mut name_room, name, name_len)?;
        env.new_bytes(options.text_of(name)?.as_bytes())
    }
}

native! {
    /// Lists the options: name, kind, limits, default, help, and whether a key space may set its
    /// own.
    "listOptions" fn list_options(env) -> jbyteArray {
        know_guards();
        let of_keyspaces: Vec<&str> = KeyspaceOptions::list().map(|option| option.name).collect();
        let of_store = Options::list().iter().flat_map(|option| {
            let is_own = of_keyspaces.contains(&option.name).to_string();
            let (kind, limits) = (option.kind.to_string(), option.limits.to_string());
            let help = option.help.trim().to_owned();
            [option.name.to_string(), kind, limits, option.default_text(), help, is_own]
        });
        let of_filters = Options::filter_list();
        let of_filters = of_filters.iter().flat_map(|option| {
            let (kind, limits) = ("filter".to_owned(), option.limits.to_string());
            let help = option.help.trim().to_owned();
            [option.name.to_string(), kind, limits, option.default_text(), help, true.to_string()]
        });
        env.new_bytes(&texts(of_store.chain(of_filters))?)
    }
}
