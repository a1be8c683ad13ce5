use std::sync::Arc;

use super::*;

#[test]
fn without_a_device_the_cpu_works_and_it_is_said_once() {
    let said = Arc::new(Mutex::new(Vec::new()));
    let log = said.clone();
    let accelerator = Accelerator::with(Err(Unavailable::NoDevice), move |message| {
        log.lock().unwrap().push(message.to_owned());
    });
    for _ in 0..3 {
        let outcome = accelerator.run(|_| panic!("there is no device"), || Ok(7));
        assert_eq!(outcome, Ok(7));
    }
    assert_eq!(*said.lock().unwrap(), ["no GPU is used: no CUDA device"]);
}

#[test]
fn opening_never_panics() {
    // With or without a device here: one of both, and no panic.
    match Gpu::open() {
        Ok(gpu) => assert!(!gpu.name().is_empty()),
        Err(why) => assert!(!why.to_string().is_empty()),
    }
}
