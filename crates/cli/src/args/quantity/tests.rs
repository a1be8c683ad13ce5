use super::*;

#[test]
fn people_write_quantities_in_many_ways() {
    assert_eq!(time("8h"), Ok(28_800.0));
    assert_eq!(time(" 1.5 min "), Ok(90.0));
    assert_eq!(time("2us"), Ok(2e-6));
    assert_eq!(time("-5h"), Ok(-18_000.0), "the planner names the field");
    assert_eq!(size("64GiB"), Ok(64.0 * 1_073_741_824.0));
    assert_eq!(size("4096"), Ok(4096.0));
    assert_eq!(rate("1.5GB/s"), Ok(1.5e9));
    assert_eq!(rate("1.5gb"), Ok(1.5e9));
    assert_eq!(rate("100Gbit/s"), Ok(12.5e9));
    assert_eq!((share("60%"), share("0.6")), (Ok(0.6), Ok(0.6)));
}

#[test]
fn other_texts_are_refused_with_an_example() {
    for bad in ["", "h", "NaN", "inf", "1e9", "8 fortnights", "1..5h", "8h30"] {
        assert!(time(bad).unwrap_err().contains("10min"), "{bad}");
        assert!(size(bad).is_err() && rate(bad).is_err() && share(bad).is_err(), "{bad}");
    }
    assert!(size("1GB/s").is_err() && share("0.6GB").is_err());
}

#[test]
fn codecs_need_a_name_that_a_job_can_use() {
    let codec = codec("zstd:1=30%,2GB/s,4GB/s");
    assert_eq!(codec.unwrap().compress_bps, 2e9);
    for bad in ["lz4", "zip=30%,2GB/s,4GB/s", "lz4=30%,2GB/s", "lz4=1,2,3,4"] {
        assert!(super::codec(bad).is_err(), "{bad}");
    }
}
