use super::*;
use proptest::prelude::*;

#[test]
fn job_names_stay_one_plain_component() {
    for good in ["heat", "CM1.hurricane_3-b", "0"] {
        check_job(good).unwrap();
    }
    let long = "x".repeat(65);
    for bad in ["", ".", "..", "../x", "a/b", "-rf", "a b", "naïve", "a\0b", long.as_str()] {
        assert!(check_job(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn region_names_may_be_any_printable_text() {
    for good in ["T", "température/0", "a b"] {
        check_region(good).unwrap();
    }
    let long = "x".repeat(256);
    for bad in ["", "a\nb", "\0", long.as_str()] {
        assert!(check_region(bad).is_err(), "{bad:?}");
    }
}

proptest! {
    #[test]
    fn object_names_lead_back(version: u64, attempt: [u8; 8], rank: u32, id: [u8; 16]) {
        let (version, attempt, rank) = (Version(version), AttemptId(attempt), Rank(rank));
        for level in Level::ALL {
            for attempt in [None, Some(attempt)] {
                let name = ManifestName { version, attempt, level: *level };
                prop_assert_eq!(parse_manifest(&name.object()), Some(name));
            }
        }
        let name = image(version, attempt, rank);
        prop_assert_eq!(parse_image(&name), Some((version, attempt, rank)));
        let name = part(version, attempt, rank);
        prop_assert_eq!(parse_part(&name), Some((version, attempt, rank)));
        prop_assert_eq!(parse_image(&name), None);
        prop_assert_eq!(parse_segment(&segment(SegmentId(id))), Some(SegmentId(id)));
        prop_assert_eq!(parse_ring(&ring(version, attempt)), Some((version, attempt)));
        prop_assert_eq!(parse_pledge(&pledge(version, attempt)), Some((version, attempt)));
        prop_assert_eq!(parse_mark(&mark(version, attempt)), Some((version, attempt)));
        let place = (rank.0, rank.0 / 2, 3);
        let name = shard(version, attempt, place);
        prop_assert_eq!(parse_shard(&name), Some((version, attempt, place)));
    }

    #[test]
    fn any_other_name_is_refused_or_canonical(name in "\\PC{0,60}") {
        if let Some(parsed) = parse_manifest(&name) {
            prop_assert_eq!(parsed.object(), name);
        }
    }
}
