//! Device regions through a whole job, on the stand-in: the engine's path is that of a GPU.

mod agent;
mod faults;
mod ranks;
mod world;

use standfast::{Kind, Version};
use world::{World, bytes_of, noise};

#[test]
fn every_setting_brings_device_memory_back() {
    let settings: [&[(&str, &str)]; 8] = [
        &[],
        &[("lab.page", "1KiB"), ("lab.segment", "64KiB"), ("lab.block", "4KiB")],
        &[("lab.page", "64KiB")],
        &[("lab.mode", "full")],
        &[("lab.mode", "incremental")],
        &[("lab.hash", "blake3")],
        &[("lab.device_codec", "none"), ("codec", "zstd:1")],
        &[("capture", "cow"), ("lab.device_codec", "deflate")],
    ];
    for settings in settings {
        let world = World::new(settings);
        // More than the 4 MiB of staging, and no whole number of pages.
        let mut field = bytes_of(&(0..900_001).map(|i| f64::from(i).sqrt()).collect::<Vec<_>>());
        field[1_000_000..3_000_000].fill(0);
        let mut device = field.clone();
        {
            let job = world.open();
            let host = job.alloc::<u64>("step", 1000).unwrap();
            world.protect(&job, "field", &mut device, 8).unwrap();
            let empty = &mut [0_u8; 0];
            world.protect(&job, "empty", empty, 0).unwrap();
            host.write()[0] = 1;
            world.durable(&job);
            for page in [0, 30, 200] {
                device[page * 4096 + 9] ^= 0x55;
            }
            device[field.len() - 1] ^= 1;
            host.write()[0] = 2;
            world.durable(&job);
        }
        let expected = device.clone();
        device.fill(0xee);
        let job = world.open();
        let host = job.alloc::<u64>("step", 1000).unwrap();
        world.protect(&job, "field", &mut device, 8).unwrap();
        let restarted = job.restart().unwrap().unwrap();
        assert_eq!((restarted.version, host.read()[0]), (Version(2), 2));
        assert!(device == expected, "{settings:?}");

        // What a restart brought is known: only what changes from now on is stored.
        device[50_000] ^= 1;
        let version = world.durable(&job);
        let stats = job.report(version).unwrap().stats;
        if !settings.contains(&("lab.mode", "full")) {
            assert_eq!(stats.new_pages, 1, "{settings:?}");
        }
        job.restart_from(Version(1)).unwrap();
        assert!(device == field, "{settings:?}");
    }
}

#[test]
fn pages_on_the_device_and_on_the_host_are_one_page() {
    let world = World::new(&[]);
    let mut device = bytes_of(&noise(1, 64 * 512));
    let job = world.open();
    let host = job.alloc::<u64>("host", 64 * 512).unwrap();
    host.write().copy_from_slice(&noise(1, 64 * 512));
    world.protect(&job, "device", &mut device, 0).unwrap();
    let version = world.durable(&job);
    let stats = job.report(version).unwrap().stats;
    assert_eq!((stats.new_pages, stats.duplicate_pages), (64, 64));
    // Earlier checkpoints count too.
    device.copy_within(10 * 4096..20 * 4096, 0);
    let version = world.durable(&job);
    assert_eq!(job.report(version).unwrap().stats.new_pages, 0);
}

#[test]
fn numbers_cross_compressed_and_come_back_without_a_device() {
    let world = World::new(&[]);
    let numbers: Vec<f64> = (0..1_000_000).map(|i| 300.0 + (f64::from(i) * 1e-4).sin()).collect();
    let mut device = bytes_of(&numbers);
    let job = world.open();
    world.protect(&job, "field", &mut device, 8).unwrap();
    let version = world.durable(&job);
    let stats = job.report(version).unwrap().stats;
    assert!(stats.segment_bytes < device.len() as u64 * 3 / 4, "{stats:?}");
    job.close().unwrap();

    let job = world.open();
    let host = job.alloc::<f64>("field", numbers.len()).unwrap();
    job.restart().unwrap().unwrap();
    assert!(*host.read() == *numbers);
    let mut buf = vec![0; device.len()];
    job.read_region(version, "field", &mut buf).unwrap();
    assert!(buf == device);
}

#[test]
fn what_cannot_be_a_device_region_is_refused() {
    let world = World::new(&[]);
    let job = world.open();
    let mut device = vec![0; 10_000];
    world.protect(&job, "a", &mut device, 0).unwrap();
    assert_eq!(world.protect(&job, "a", &mut device, 0).unwrap_err().kind(), Kind::Invalid);
    assert_eq!(world.protect(&job, "b", &mut device[16..], 0).unwrap_err().kind(), Kind::Invalid);
    assert_eq!(world.protect(&job, "c", &mut device[8..], 0).unwrap_err().kind(), Kind::Invalid);
    job.unprotect("a").unwrap();
    world.protect(&job, "b", &mut device[16..], 0).unwrap();
    if standfast_gpu::Gpu::open().is_err() {
        // SAFETY: nothing is protected where there is no device.
        let refused = unsafe { job.protect_device("d", device.as_ptr() as u64, 4096, 0) };
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), Kind::Unsupported);
        assert!(error.to_string().starts_with("device memory: "), "{error}");
    }
}

#[test]
fn without_a_device_the_pipeline_gpu_is_the_other_one_and_says_so_once() {
    let world = World::new(&[("lab.pipeline", "gpu"), ("lab.pool", "32MiB")]);
    let numbers: Vec<f64> = (0..300_000).map(|i| 300.0 + (f64::from(i) * 1e-4).sin()).collect();
    let job = world.open();
    let host = job.alloc::<f64>("field", numbers.len()).unwrap();
    let mut notes = Vec::new();
    for round in 0..3 {
        host.write().copy_from_slice(&numbers);
        host.write()[0] = f64::from(round);
        let version = world.durable(&job);
        notes.extend(job.report(version).unwrap().notes);
    }
    match standfast_gpu::Gpu::open() {
        Ok(_) => assert!(notes.is_empty(), "{notes:?}"),
        Err(why) => assert_eq!(notes, [format!("no GPU is used: {why}")]),
    }
    host.write().fill(0.0);
    job.restart().unwrap().unwrap();
    assert!(host.read()[0] == 2.0 && host.read()[1..] == numbers[1..]);
}
