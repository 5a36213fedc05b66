//! Tests of streams in every form: reading returns what was written, and errors are named.

use trommel::Expiry;

use super::*;

const FORMS: [StreamForm; 3] = [StreamForm::Native, StreamForm::JsonLines, StreamForm::Tsv];

/// Returns entries with bytes that have a meaning in some form.
fn entries() -> Vec<StreamEntry> {
    let all: Vec<u8> = (0..=255).collect();
    let keys = [&b""[..], b"\\.", b"{\"end\"", b"\"", b"a\tb\r\n", b"\xff\0", "Zürich".as_bytes()];
    let mut entries: Vec<StreamEntry> = keys
        .iter()
        .map(|key| StreamEntry { key: key.to_vec(), value: all.clone(), expiry: None })
        .collect();
    entries[1].value.clear();
    entries[2].expiry = Some(Expiry::at_milliseconds(1_767_225_600_000));
    entries[3].expiry = Some(Expiry::NEVER);
    entries.push(StreamEntry { key: b"large".to_vec(), value: vec![7; 200_000], expiry: None });
    entries
}

fn written(form: StreamForm, entries: &[StreamEntry]) -> (StreamEnd, Vec<u8>) {
    let mut writer = StreamWriter::new(Vec::new(), form).expect("memory");
    for StreamEntry { key, value, expiry } in entries {
        writer.put(key, value, *expiry).expect("memory");
    }
    writer.finish().expect("memory")
}

/// Returns all entries, what was read, and whether it was checked.
fn read(
    bytes: &[u8],
    form: Option<StreamForm>,
) -> Result<(Vec<StreamEntry>, StreamEnd, bool), BadStream> {
    let mut reader = StreamReader::new(bytes, form)?;
    let mut entries = Vec::new();
    while let Some(entry) = reader.next_entry()? {
        entries.push(entry);
    }
    assert_eq!(reader.next_entry()?, None, "it has ended");
    let (end, is_checked) = reader.end();
    Ok((entries, end, is_checked))
}

#[test]
fn every_form_gives_back_the_bytes_and_has_the_same_checksum() {
    let ends = FORMS.map(|form| {
        let (end, bytes) = written(form, &entries());
        let named = read(&bytes, Some(form)).expect("whole");
        assert_eq!(named, (entries(), end, true), "{form:?}");
        end
    });
    assert_eq!((ends[0], ends[0]), (ends[1], ends[2]));
    assert_eq!(ends[0].entries, 8);
    for form in FORMS {
        let (end, bytes) = written(form, &[]);
        assert_eq!(read(&bytes, Some(form)), Ok((vec![], end, true)), "nothing, as {form:?}");
    }
}

#[test]
fn the_first_bytes_tell_the_form() {
    let entry = StreamEntry { key: b"drum".to_vec(), value: b"turns".to_vec(), expiry: None };
    for form in FORMS {
        let (end, bytes) = written(form, std::slice::from_ref(&entry));
        assert_eq!(read(&bytes, None), Ok((vec![entry.clone()], end, true)), "{form:?}");
    }
    assert_eq!(
        read(b"", None),
        Ok((vec![], StreamEnd { checksum: read_of_none(), ..StreamEnd::default() }, false))
    );
}

fn read_of_none() -> u64 {
    written(StreamForm::Tsv, &[]).0.checksum
}

#[test]
fn the_bytes_of_the_native_form_are_these() {
    let entries = [
        StreamEntry { key: b"k".to_vec(), value: b"vv".to_vec(), expiry: None },
        StreamEntry { key: b"l".to_vec(), value: vec![], expiry: Some(Expiry::at_milliseconds(5)) },
    ];
    let (end, bytes) = written(StreamForm::Native, &entries);
    let block = b"\x00\x01\0\0\0\x02\0\0\0kvv\x03\x01\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0l";
    let numbers = [2, 4, end.checksum].map(u64::to_le_bytes).concat();
    let checksum = |bytes: &[u8]| crc32c::crc32c(bytes).to_le_bytes();
    let expected = [
        &b"TRMLEXP\0\x01\0\0\0\x1e\0\0\0"[..],
        &checksum(block),
        block,
        &[0; 4],
        &checksum(&numbers),
        &numbers,
    ];
    assert_eq!(bytes, expected.concat());
}

#[test]
fn a_native_stream_that_is_cut_or_damaged_anywhere_is_refused() {
    let (_, bytes) = written(StreamForm::Native, &entries()[..4]);
    let native = Some(StreamForm::Native);
    for len in 0..bytes.len() {
        let bad = read(&bytes[..len], native).expect_err("cut short");
        assert!(bad.problem.contains("cut short"), "{len}: {bad:?}");
    }
    for place in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[place] ^= 0x10;
        assert!(read(&damaged, native).is_err(), "byte {place}");
    }
    let longer = [&bytes[..], b"x"].concat();
    assert!(read(&longer, native).expect_err("longer").problem.contains("behind the end"));
    let mut newer = bytes.clone();
    newer[8] = 2;
    assert!(read(&newer, native).expect_err("newer").problem.contains("version 2"));
}

#[test]
fn a_text_whose_entries_are_not_those_of_its_end_is_refused() {
    for form in [StreamForm::JsonLines, StreamForm::Tsv] {
        let (_, bytes) = written(form, &entries()[4..7]);
        let text = String::from_utf8(bytes).expect("text");
        let lines: Vec<&str> = text.lines().collect();
        let without_one = lines[1..].join("\n");
        let bad = read(without_one.as_bytes(), Some(form)).expect_err("one is missing");
        assert!(bad.problem.contains("tells of 3 entries") && bad.place == "line 3", "{bad:?}");
        let whole = lines[..3].join("\r\n");
        let (entries, _, is_checked) = read(whole.as_bytes(), Some(form)).expect("no end to check");
        assert_eq!((entries.len(), is_checked), (3, false));
    }
}

#[test]
fn wrong_lines_are_named() {
    let cases: [(&[u8], &str, &str); 9] = [
        (b"a\tb\n\nc\n", "line 3", "1 columns"),
        (b"a\tb\tc\n", "line 1", "'c' is no number"),
        (b"a\\q\tb\n", "line 1", "\\q"),
        (b"\\.\t1\t2\tx\n", "line 1", "'x' is no number"),
        (b"{\"key\":\"a\"}\n", "line 1", "value"),
        (b"{\"key\":\"a\",\"value\":\"b\"}\n{\n", "line 2", "an entry is"),
        (b"{\"key\":\"a\",\"value\":{\"hex\":\"0\"}}\n", "line 1", "the value is not hexadecimal"),
        (b"{\"key\":\"a\",\"value\":\"b\",\"ttl\":3}\n", "line 1", "ttl"),
        (b"{\"key\":1,\"value\":\"b\"}\n", "line 1", "an entry is"),
    ];
    for (text, place, words) in cases {
        let bad = read(text, None).expect_err(words);
        assert!(bad.place == place && bad.problem.contains(words), "{bad:?}");
    }
    let long = [&b"k".repeat(65_537)[..], b"\tv\n"].concat();
    assert!(read(&long, None).expect_err("long").problem.contains("a key of 65537 bytes"));
}
