use super::*;
use crate::Kind;
use proptest::prelude::*;

fn encoded<T: Serialize>(value: &T) -> Vec<u8> {
    let mut bytes = vec![0xff; 64];
    encode(value, &mut bytes).unwrap();
    bytes
}

#[test]
fn values_come_back_whatever_was_there_before() {
    let value = (7u64, String::from("seven"), vec![1.5, -0.0]);
    assert_eq!(decode::<(u64, String, Vec<f64>)>(&encoded(&value)).unwrap(), value);
    decode::<()>(&encoded(&())).unwrap();
    assert!(encoded(&()).iter().all(|byte| *byte == 0), "the rest is zero");
}

#[test]
fn another_type_and_a_wrong_length_are_refused() {
    let text = encoded(&"seven");
    decode::<(u64, u64, u64, u64, u64, u64, u64)>(&text).unwrap_err();
    assert!(decode::<u8>(&text).unwrap_err().contains("left over"));
    let mut long = text;
    long[7] = 1;
    decode::<String>(&long).unwrap_err();
    decode::<String>(&long[..4]).unwrap_err();
}

proptest! {
    #[test]
    fn any_bytes_are_a_value_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = decode::<Vec<Option<String>>>(&bytes);
    }
}

fn job() -> Job {
    Job::builder().store("memory:").open().unwrap()
}

#[test]
fn it_grows_and_shrinks_between_checkpoints() {
    let job = job();
    let state = job.state("list", vec![0u64; 3]).unwrap();
    let mut versions = Vec::new();
    for length in [100_000, 1, 0, 5000] {
        *state.write() = vec![7; length];
        versions.push((job.checkpoint(None).unwrap(), length));
    }
    for (version, length) in versions {
        job.restart_from(version).unwrap();
        assert_eq!(*state.read(), vec![7; length]);
    }
}

#[test]
fn what_cannot_be_saved_or_is_borrowed_takes_no_checkpoint() {
    let job = job();
    let state = job.state("bytes", vec![1u8; REGION_BYTES]).unwrap();
    let error = job.checkpoint(None).unwrap_err();
    assert_eq!(error.kind(), Kind::Invalid);
    assert!(error.to_string().contains("more than a mebibyte"), "{error}");
    *state.write() = vec![1];
    let guard = state.write();
    assert!(job.checkpoint(None).unwrap_err().to_string().contains("is borrowed"));
    drop(guard);
    let reading = state.read();
    job.checkpoint(None).unwrap();
    assert_eq!(*reading, [1]);
}

#[test]
fn another_type_fails_the_restart_and_leaves_the_value() {
    let job = job();
    let text = job.state("what", String::from("seven")).unwrap();
    job.checkpoint(None).unwrap();
    drop(text);
    let number = job.state("what", 3u8).unwrap();
    let error = job.restart().unwrap_err();
    assert_eq!(error.kind(), Kind::Invalid);
    assert!(error.to_string().contains("its state \"what\" is no u8"), "{error}");
    assert_eq!(*number.read(), 3);
}
