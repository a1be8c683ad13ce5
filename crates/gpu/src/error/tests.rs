use super::*;

#[test]
fn only_device_faults_call_for_the_cpu() {
    let full = Error::OutOfMemory { what: "slots", bytes: 1 };
    assert!(full.is_device_fault());
    assert_eq!(full.kind(), Kind::Full);
    assert!(!Error::damaged("float", "short").is_device_fault());
    assert!(!Error::invalid("no page").is_device_fault());
}
