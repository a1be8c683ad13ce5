use super::*;
use crate::id::{Digest, JobId, SegmentId, Version};
use crate::image::SegmentRef;
use proptest::prelude::*;

const OWN: Rank = Rank(2);
const HASH: HashKind = HashKind::Sha1;

/// A page of a region: where it is and whose; a page of zeros has neither.
type Page = Option<(u32, Rank)>;

fn hash(region: usize, page: usize) -> Vec<u8> {
    vec![(region * 100 + page) as u8; HASH.bytes()]
}

/// An image of such pages, each run one page long or longer, and its references.
fn image(regions: &[Vec<Page>]) -> Image {
    let segment = |at: u8| SegmentRef {
        id: SegmentId([at; 16]),
        rank: Rank(7),
        slots: 1000,
        file_bytes: 1,
        index: Digest([0; 32]),
    };
    let mut references: Vec<Reference> = Vec::new();
    for (region, pages) in regions.iter().enumerate() {
        for (page, owner) in pages.iter().enumerate() {
            let Some((_, owner)) = *owner else { continue };
            let last = references.last_mut().filter(|last| {
                let end = last.page + last.pages(HASH);
                (last.region, end, last.owner) == (region as u32, page as u64, owner)
            });
            match last {
                _ if owner == OWN => {}
                Some(last) => last.hashes.extend(hash(region, page)),
                None => references.push(Reference {
                    region: region as u32,
                    page: page as u64,
                    owner,
                    hashes: hash(region, page),
                }),
            }
        }
    }
    Image {
        job: JobId([1; 16]),
        version: Version(3),
        rank: OWN,
        page_bytes: 4096,
        hash: HASH,
        segments: vec![segment(1), segment(2)],
        regions: regions.iter().enumerate().map(|(at, pages)| region(at, pages)).collect(),
        references: Some(references),
    }
}

fn region(at: usize, pages: &[Page]) -> RegionImage {
    let mut runs: Vec<Run> = Vec::new();
    for (page, place) in pages.iter().enumerate() {
        match (runs.last_mut(), place) {
            (Some(Run::Zero { pages }), None) => *pages += 1,
            (Some(Run::Stored { pages, segment, .. }), Some((other, _))) if segment == other => {
                *pages += 1;
            }
            (_, None) => runs.push(Run::Zero { pages: 1 }),
            (_, Some((segment, _))) => {
                runs.push(Run::Stored { pages: 1, segment: *segment, slot: page as u32 });
            }
        }
    }
    RegionImage {
        name: format!("region {at}"),
        bytes: pages.len() as u64 * 4096,
        elem: 8,
        pages_digest: Digest([9; 32]),
        runs,
    }
}

/// Two pages of rank 5, one of zeros, one of rank 6; and a region with one of rank 5.
fn some() -> Image {
    let theirs = |owner| Some((0, Rank(owner)));
    image(&[vec![theirs(5), theirs(5), None, theirs(6)], vec![theirs(5)]])
}

#[test]
fn contradictions_are_refused() {
    assert_eq!(Image::decode(&some().encode().0).unwrap().0, some());
    let spoilt: [fn(&mut Vec<Reference>); 11] = [
        |list| list[2].region = 2,
        |list| list[0].region = u32::MAX,
        |list| list[2].page = 1,
        |list| list[2].page = u64::MAX,
        |list| list[1].page = 2,
        |list| list[1].page = 1,
        |list| list.swap(0, 1),
        |list| list[0].owner = OWN,
        |list| list[0].owner = Rank(u32::MAX),
        |list| list[0].hashes.clear(),
        |list| list[2].hashes.extend([0; 20]),
    ];
    for (at, spoil) in spoilt.iter().enumerate() {
        let mut image = some();
        spoil(image.references.as_mut().unwrap());
        let refused = Image::decode(&image.encode().0);
        assert!(matches!(refused, Err(Error::Malformed { .. })), "{at}: {refused:?}");
    }
}

#[test]
fn hashes_are_as_many_as_pages() {
    for spare in [1, 19] {
        for cut in [true, false] {
            let mut image = some();
            let hashes = &mut image.references.as_mut().unwrap()[2].hashes;
            // A part of a hash counts as none: what is said and what is there differ.
            match cut {
                true => hashes.truncate(20 - spare),
                false => hashes.resize(20 + spare, 0),
            }
            assert!(Image::decode(&image.encode().0).is_err());
        }
    }
}

/// What an image takes at most of the memory it describes, with the default page and hash.
#[test]
fn metadata_of_pages_that_all_are_elsewhere_stays_below_one_percent() {
    let pages = 1 << 16;
    let share = |together: u32| {
        let runs = (0..pages / together).map(|at| {
            let slot = at * together * 3 % (1 << 20);
            Run::Stored { pages: together, segment: 0, slot }
        });
        let owner = |at: u32| Rank(200 + at % 2);
        let references = (0..pages / together).map(|at| Reference {
            region: 0,
            page: u64::from(at * together),
            owner: owner(at),
            hashes: vec![7; together as usize * 16],
        });
        let mut image = image(&[vec![]]);
        image.hash = HashKind::Xxh3;
        image.segments[0].slots = 1 << 24;
        image.regions[0].bytes = u64::from(pages) * 4096;
        image.regions[0].runs = runs.collect();
        image.references = Some(references.collect());
        let (bytes, _) = image.encode();
        Image::decode(&bytes).unwrap();
        100.0 * bytes.len() as f64 / image.bytes() as f64
    };
    for (together, most) in [(pages, 0.4), (32, 0.42), (1, 0.9)] {
        let found = share(together);
        println!("all pages elsewhere, {together} together: {found:.3} % of them");
        assert!(found <= most, "{together} together: {found:.3} %");
    }
}

proptest! {
    #[test]
    fn a_changed_byte_under_a_good_digest_is_refused_or_leads_back(
        at: proptest::sample::Index,
        byte: u8,
    ) {
        let (mut bytes, _) = some().encode();
        let covered = bytes.len() - 32;
        // Behind the head of the frame.
        bytes[24 + at.index(covered - 24)] = byte;
        let digest = Digest::of(&bytes[..covered]);
        bytes[covered..].copy_from_slice(&digest.0);
        if let Ok((image, _)) = Image::decode(&bytes) {
            let (again, digest) = image.encode();
            prop_assert_eq!(Image::decode(&again), Ok((image, digest)));
        }
    }

    #[test]
    fn references_lead_back_and_to_their_pages(
        regions in proptest::collection::vec(
            proptest::collection::vec(
                proptest::option::weighted(0.8, (0u32..2, (0u32..4).prop_map(Rank))),
                0..30,
            ),
            0..4,
        ),
    ) {
        let image = image(&regions);
        let (bytes, digest) = image.encode();
        prop_assert_eq!(Image::decode(&bytes), Ok((image.clone(), digest)));
        let mut found = Vec::new();
        for piece in image.referred() {
            let Run::Stored { pages, segment, slot } = piece.run else { panic!("zeros") };
            let hashes = piece.hashes.chunks_exact(HASH.bytes());
            prop_assert_eq!(hashes.len(), pages as usize);
            for (at, hash) in hashes.enumerate() {
                let region = piece.reference.region as usize;
                let slot = slot as usize + at;
                found.push((region, piece.page as usize + at, segment, slot, hash.to_vec()));
            }
        }
        let mut expected = Vec::new();
        for (at, pages) in regions.iter().enumerate() {
            for (page, place) in pages.iter().enumerate() {
                if let Some((segment, owner)) = place && *owner != OWN {
                    // Slots are the numbers of pages here.
                    expected.push((at, page, *segment, page, hash(at, page)));
                }
            }
        }
        prop_assert_eq!(found, expected);
    }
}
