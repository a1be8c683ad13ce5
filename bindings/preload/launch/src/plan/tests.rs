use super::*;

fn draft() -> Draft {
    let mut draft = Draft::new(4096);
    draft.header.cwd = draft.keep(b"/work");
    let path = draft.keep(b"/bin/x");
    let (start, end, digest) = (0x1000, 0x9000, [7; 32]);
    draft.mappings.push(Mapping { start, end, offset: 0, prot: 3, kind: FILE, path, digest });
    draft.pieces.push(Piece { start: 0x2000, bytes: 0x1000, from: 0 });
    draft.pieces.push(Piece { start: 0x4000, bytes: 0x5000, from: 0 });
    draft.threads.push(Thread { first: 1, ..Thread::default() });
    draft
}

/// As the system gives it: aligned.
fn aligned(bytes: &[u8]) -> Vec<u64> {
    let mut words = vec![0u64; bytes.len().div_ceil(8)];
    words.as_mut_bytes()[..bytes.len()].copy_from_slice(bytes);
    words
}

fn parses(draft: &Draft) -> bool {
    Plan::parse(aligned(&draft.encode()).as_bytes()).is_ok()
}

#[test]
fn a_description_is_read_as_it_was_written() {
    let words = aligned(&draft().encode());
    let plan = Plan::parse(words.as_bytes()).unwrap();
    assert_eq!(plan.text(plan.header.cwd), b"/work");
    assert_eq!(plan.text(plan.mappings[0].path), b"/bin/x");
    assert_eq!((plan.pieces.len(), plan.threads.len(), plan.files.len()), (2, 1, 0));
    assert_eq!(Draft::of(&plan).encode(), draft().encode());
}

#[test]
fn what_is_cut_or_contradicts_itself_is_refused() {
    let whole = draft().encode();
    for len in (0..whole.len()).step_by(8) {
        assert!(Plan::parse(&aligned(&whole).as_bytes()[..len]).is_err(), "{len}");
    }
    let mut other = draft();
    other.pieces[1].start = 0x1000;
    assert!(!parses(&other), "pieces in disorder");
    let mut other = draft();
    other.pieces[1].bytes = 0x6000;
    assert!(!parses(&other), "a piece beyond its mapping");
    let mut other = draft();
    other.mappings[0].path.len = 100;
    assert!(!parses(&other), "a path beyond the text");
    let mut other = draft();
    other.threads.clear();
    assert!(!parses(&other), "no first thread");
}
