use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn headers_lead_back(id: [u8; 16], key: [u8; 32], created_ns: u64) {
        let header = StoreHeader { id: JobId(id), job: "heat".into(), key, created_ns };
        prop_assert_eq!(StoreHeader::decode(&header.encode()).unwrap(), header);
    }
}

#[test]
fn a_header_with_an_escaping_job_name_is_refused() {
    let header =
        StoreHeader { id: JobId([1; 16]), job: "../x".into(), key: [0; 32], created_ns: 0 };
    assert!(StoreHeader::decode(&header.encode()).is_err());
}
