use super::*;
use proptest::prelude::*;

#[test]
fn people_write_sizes_in_many_ways() {
    for (text, bytes) in
        [("4096", 4096), ("64KiB", 65536), ("64 kib", 65536), ("2M", 2 << 20), ("2MB", 2_000_000)]
    {
        assert_eq!(text.parse(), Ok(ByteSize(bytes)), "{text}");
    }
    for bad in ["", "MiB", "-1", "1.5GiB", "4 furlongs", "99999999999TiB", "1e3"] {
        assert!(bad.parse::<ByteSize>().is_err(), "{bad}");
    }
}

proptest! {
    #[test]
    fn sizes_lead_back(bytes: u64) {
        prop_assert_eq!(ByteSize(bytes).to_string().parse(), Ok(ByteSize(bytes)));
    }
}
