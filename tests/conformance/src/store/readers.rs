//! Reading at any offset, length and address, while others replace and remove.

use std::sync::Arc;
use std::thread;

use standfast_store::Store;
use standfast_sys::AlignedBuf;

use super::{Case, pattern, write};
use crate::case_table;

pub(super) const CASES: &[Case] = case_table![
    any_offset_and_length_reads_right,
    any_address_reads_right,
    reading_past_the_end_stops_there,
    an_open_reader_never_sees_a_mixture,
    one_reader_serves_many_threads,
];

const LEN: usize = 3 * (1 << 20) + 1234;

fn any_offset_and_length_reads_right(store: &Arc<dyn Store>) {
    let bytes = pattern(LEN, 1);
    write(store, "a", &bytes);
    let reader = store.open("a").unwrap();
    let mut buf = AlignedBuf::with_len(LEN);
    let edges =
        [0, 1, 511, 4095, 4096, 4097, 8192, (1 << 20) - 1, 1 << 20, 2 * (1 << 20) + 5, LEN - 1];
    for offset in edges {
        for len in [1, 100, 4096, 5000, 1 << 20, LEN] {
            let expected = &bytes[offset..LEN.min(offset + len)];
            let count = reader.read_at(offset as u64, &mut buf[..len]).unwrap();
            assert!(&buf[..count] == expected, "{len} bytes from {offset}, {count} read");
        }
    }
}

fn any_address_reads_right(store: &Arc<dyn Store>) {
    let bytes = pattern(LEN, 2);
    write(store, "a", &bytes);
    let reader = store.open("a").unwrap();
    let mut buf = AlignedBuf::with_len(LEN + 4096);
    for shift in [0, 1, 8, 512, 4095] {
        for offset in [0, 1, 4096, 4096 - shift] {
            let len = 1_500_000;
            let count = reader.read_at(offset as u64, &mut buf[shift..shift + len]).unwrap();
            assert_eq!(count, len);
            assert!(buf[shift..shift + len] == bytes[offset..offset + len], "{shift}, {offset}");
        }
    }
}

fn reading_past_the_end_stops_there(store: &Arc<dyn Store>) {
    for len in [0, 10, 4096, 4100] {
        let bytes = pattern(len, 3);
        store.put("a", &bytes).unwrap();
        let reader = store.open("a").unwrap();
        let mut buf = vec![0xaa; 10_000];
        assert_eq!(reader.read_at(0, &mut buf).unwrap(), len);
        assert_eq!(buf[..len], bytes);
        for offset in [len as u64, len as u64 + 1, 1 << 40, u64::MAX] {
            assert_eq!(reader.read_at(offset, &mut buf).unwrap(), 0, "offset {offset}");
        }
        assert_eq!(reader.read_at(0, &mut []).unwrap(), 0);
    }
}

fn an_open_reader_never_sees_a_mixture(store: &Arc<dyn Store>) {
    let (old, new) = (pattern(1_000_000, 4), pattern(1_000_000, 5));
    write(store, "a", &old);
    let reader = store.open("a").unwrap();
    let mut buf = vec![0; old.len()];
    write(store, "a", &new);
    if let Ok(count) = reader.read_at(0, &mut buf) {
        assert!(buf[..count] == old[..], "replaced below an open reader");
    }
    store.remove("a").unwrap();
    if let Ok(count) = reader.read_at(0, &mut buf) {
        assert!(buf[..count] == old[..], "removed below an open reader");
    }
}

fn one_reader_serves_many_threads(store: &Arc<dyn Store>) {
    let bytes = pattern(LEN, 6);
    write(store, "a", &bytes);
    let reader = store.open("a").unwrap();
    let (reader, bytes) = (&reader, &bytes);
    thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                let mut buf = vec![0; 300_000];
                for step in 0..8 {
                    let offset = step * 350_001 + thread * 13;
                    let count = reader.read_at(offset as u64, &mut buf).unwrap();
                    assert!(buf[..count] == bytes[offset..offset + count]);
                }
            });
        }
    });
}
