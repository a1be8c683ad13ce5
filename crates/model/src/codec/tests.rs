use super::*;
use proptest::prelude::*;

#[test]
fn nonsense_is_named() {
    let text = Codec::new(1.0, 1.0, 1.0).unwrap_err().to_string();
    assert!(text.contains("codec factor"), "{text}");
    let codec = Codec::new(0.5, 1e8, 1e9).unwrap();
    let text = codec.commit_s(1e9, 0.0).unwrap_err().to_string();
    assert!(text.contains("write_bps"), "{text}");
}

proptest! {
    #[test]
    fn saturating_cores_saturate(factor in 0.0f64..0.99, core in 1e6f64..1e9, write in 1e7f64..1e10) {
        let one = Codec::new(factor, core, 1e12).unwrap();
        let cores = one.saturating_cores(write).unwrap();
        let many = Codec::new(factor, core * cores as f64, 1e12).unwrap();
        let bytes = 1e12;
        let bound = many.stored_bytes(bytes) / write;
        prop_assert!(many.commit_s(bytes, write).unwrap() <= bound * (1.0 + 1e-9));
        if cores > 1 {
            let fewer = Codec::new(factor, core * (cores - 1) as f64, 1e12).unwrap();
            prop_assert!(fewer.commit_s(bytes, write).unwrap() >= bound);
        }
    }
}
