//! A stand-in through the whole of [`DeviceMemory`]: what is found, staged, drained, put back;
//! and what faults do.

use standfast_capture::{Device, DeviceRegion, DeviceResult, Drained, Which};
use standfast_format::{CodecKind, HashKind, Kind};
use standfast_gpu::memory::{Choice, DeviceMemory, Settings};
use standfast_gpu::{Error, float};
use standfast_reduce::{BlockDecoder, PageHasher};
use standfast_stand_in::{Faults, StandIn, Step};
use standfast_testkit::vectors;

const PAGE: usize = 4096;

fn settings(staging_pages: usize) -> Settings {
    Settings {
        key: [9; 32],
        hash: HashKind::Xxh3,
        page_bytes: PAGE,
        staging_bytes: staging_pages * PAGE,
        choice: Choice::Auto,
    }
}

struct World {
    memory: Vec<u8>,
    device: DeviceMemory<StandIn>,
    faults: Faults,
    region: DeviceRegion,
}

fn world(memory: Vec<u8>, settings: Settings) -> World {
    assert!((memory.as_ptr() as usize).is_multiple_of(16), "large vectors are aligned");
    let faults = Faults::default();
    let stand_in = StandIn::new(&settings.key, faults.clone());
    let mut device = DeviceMemory::new(stand_in, settings, None);
    let at = memory.as_ptr().expose_provenance() as u64;
    // SAFETY: the vector is not moved or freed before the device.
    let region = unsafe { device.register(at, memory.len()) }.unwrap();
    World { memory, device, faults, region }
}

impl World {
    fn change(&mut self, at: usize, byte: u8) {
        // Through the pointer that the device has, too.
        let address = self.memory.as_ptr() as usize + at;
        let place = std::ptr::with_exposed_provenance_mut::<u8>(address);
        // SAFETY: inside of the vector.
        unsafe { place.write(byte) };
    }

    /// Stages and drains everything that changed, in as many steps as it takes.
    fn drain_all(&mut self, changed: u64, elem: u8) -> DeviceResult<(Vec<u8>, Vec<CodecKind>)> {
        let (mut pages, mut codecs, mut first) = (Vec::new(), Vec::new(), 0);
        while first < changed {
            let staged = self.device.stage(self.region, Which::Changed { first })?;
            assert!(staged > 0, "there is room after a clear");
            let all: Vec<u32> = (0..staged as u32).collect();
            let mut decoder = BlockDecoder::new(16 << 20);
            self.device.drain(&all, elem, true, &mut |drained| {
                match drained {
                    Drained::Pages(raw) => pages.extend_from_slice(raw),
                    Drained::Block { pages: count, codec, filter, bytes } => {
                        codecs.push(codec);
                        let raw_bytes = count as usize * PAGE;
                        assert!(bytes.len() <= raw_bytes);
                        pages.extend(decoder.decode(codec, filter, bytes, raw_bytes).unwrap());
                    }
                }
                true
            })?;
            self.device.clear();
            first += staged;
        }
        Ok((pages, codecs))
    }

    fn hashes(&self) -> Vec<u8> {
        let hasher = PageHasher::new(HashKind::Xxh3, &[9; 32]);
        let mut hash = [0; 16];
        let mut all = Vec::new();
        for page in self.memory.chunks(PAGE) {
            let mut whole = page.to_vec();
            whole.resize(PAGE, 0);
            hasher.hash(&whole, &mut hash);
            all.extend(hash);
        }
        all
    }
}

/// The pages of `raw` that are not zero, whole.
fn solid(raw: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    for page in raw.chunks(PAGE).filter(|page| page.iter().any(|byte| *byte != 0)) {
        all.extend_from_slice(page);
        all.resize(all.len().next_multiple_of(PAGE), 0);
    }
    all
}

#[test]
fn everything_crosses_once_and_then_what_changed() {
    let raw = vectors::mixed_pages(700 * PAGE + 100, 3);
    let mut world = world(raw.clone(), settings(64));
    let found = world.device.scan(world.region, None).unwrap();
    assert!(found.zeroed > 0);
    assert_eq!(world.drain_all(found.changed, 0).unwrap().0, solid(&raw));
    let hashes = world.hashes();
    for page in [3, 77, 700] {
        world.change(page * PAGE + 8, 0xcc);
    }
    // The device's own hashes, or those that are given to it: the same answer.
    let found = world.device.scan(world.region, Some(&hashes)).unwrap();
    let changed = world.device.changed(world.region, 0, found.changed).unwrap();
    assert_eq!(changed.pages, [3, 77, 700]);
    assert_eq!(changed.hashes[32..], world.hashes()[700 * 16..]);
    let filling = world.device.fill().unwrap();
    filling.pages(world.region, 0, &raw[..PAGE]).unwrap();
    assert!(filling.pages(world.region, raw.len() as u64 - 1, &raw[..2]).is_err());
    filling.finish().unwrap();
    let again = world.device.scan(world.region, Some(&hashes)).unwrap();
    assert_eq!(again, found);
    assert!(world.device.messages().is_empty());
}

#[test]
fn numbers_are_encoded_on_the_device_and_noise_is_not() {
    for (raw, elem, expected) in [
        (vectors::noisy_f64(256 * PAGE, 1), 8, CodecKind::Float),
        (vectors::bf16_weights(256 * PAGE, 1), 2, CodecKind::Float),
        (vectors::records(256 * PAGE, 1), 0, CodecKind::Deflate),
        (vectors::random(256 * PAGE, 1), 0, CodecKind::None),
    ] {
        let mut world = world(raw.clone(), settings(256));
        let found = world.device.scan(world.region, None).unwrap();
        let (pages, codecs) = world.drain_all(found.changed, elem).unwrap();
        assert_eq!(pages, raw);
        assert!(codecs.iter().all(|codec| *codec == expected), "{codecs:?}, not {expected}");
    }
}

#[test]
fn large_pages_make_blocks_of_one_page() {
    let settings = Settings { page_bytes: 1 << 20, staging_bytes: 8 << 20, ..settings(1) };
    let raw = vectors::noisy_f64(5 << 20, 2);
    let mut world = world(raw.clone(), settings);
    let found = world.device.scan(world.region, None).unwrap();
    assert_eq!(
        (found.changed, world.device.stage(world.region, Which::Changed { first: 0 })),
        (5, Ok(5))
    );
    let mut pages = 0;
    world
        .device
        .drain(&[1, 3], 8, true, &mut |drained| {
            let Drained::Block { pages: 1, codec: CodecKind::Float, bytes, .. } = drained else {
                panic!("{drained:?}");
            };
            let at = [1, 3][pages] << 20;
            assert!(float::decode(bytes).unwrap() == raw[at..at + (1 << 20)]);
            pages += 1;
            true
        })
        .unwrap();
    assert_eq!(pages, 2);
}

/// Out of memory and refused kernels, at every step: the same pages, one message.
#[test]
fn the_cpu_takes_over_where_the_device_cannot() {
    let memory = || Error::OutOfMemory { what: "anything", bytes: 1 << 40 };
    let refused = || Error::Driver { what: "a kernel", code: "CUDA_ERROR_INVALID_VALUE".into() };
    for step in [Step::Tracker, Step::Scan, Step::Arena, Step::Stage, Step::Lane, Step::Encode] {
        for error in [memory(), refused()] {
            let raw = vectors::mixed_pages(300 * PAGE + 5, 4);
            let mut world = world(raw.clone(), settings(100));
            world.faults.plan(step, error.clone(), usize::MAX);
            let found = world.device.scan(world.region, None).unwrap();
            assert_eq!(world.drain_all(found.changed, 8).unwrap().0, solid(&raw), "{step:?}");
            let messages = world.device.messages();
            assert_eq!(messages, [format!("the CPU takes over from the GPU: {error}")]);

            // Once there is memory again the device goes on, from what the engine knows.
            world.faults.clear();
            let hashes = world.hashes();
            world.change(7 * PAGE, 0x5a);
            let found = world.device.scan(world.region, Some(&hashes)).unwrap();
            assert_eq!(world.device.changed(world.region, 0, found.changed).unwrap().pages, [7]);
            assert!(world.device.messages().is_empty());
        }
    }
}

#[test]
fn staging_is_as_large_as_there_is_memory_for() {
    let raw = vectors::random(4096 * PAGE, 4);
    let mut world = world(raw, settings(8192));
    world.faults.plan(Step::Arena, Error::OutOfMemory { what: "staging", bytes: 1 }, 2);
    world.device.scan(world.region, None).unwrap();
    assert_eq!(world.device.stage(world.region, Which::Changed { first: 0 }).unwrap(), 2048);
    assert_eq!(world.device.stage(world.region, Which::Changed { first: 2048 }).unwrap(), 0);
    assert!(world.device.messages().is_empty());
}

#[test]
fn a_lost_device_and_a_busy_program_are_errors() {
    let lost = Error::Lost { what: "hashing", code: "CUDA_ERROR_ILLEGAL_ADDRESS".into() };
    for step in [Step::Wait, Step::Scan] {
        let mut world = world(vectors::random(64 * PAGE, 4), settings(100));
        world.faults.plan(step, lost.clone(), 1);
        let error = world.device.scan(world.region, None).unwrap_err();
        assert_eq!(error.kind, Kind::Io);
    }
    let mut world = world(vectors::random(64 * PAGE, 4), settings(100));
    world.device.scan(world.region, None).unwrap();
    world.change(17, 0xaa);
    let error = world.device.stage(world.region, Which::Changed { first: 0 }).unwrap_err();
    assert_eq!(error.kind, Kind::Invalid, "{error}");
}

#[test]
fn other_hashes_are_computed_from_copies() {
    let settings = Settings { hash: HashKind::Blake3, ..settings(64) };
    let raw = vectors::mixed_pages(90 * PAGE, 4);
    let mut world = world(raw.clone(), settings);
    let found = world.device.scan(world.region, None).unwrap();
    assert_eq!(world.device.changed(world.region, 0, 1).unwrap().hashes.len(), 32);
    assert_eq!(world.drain_all(found.changed, 8).unwrap().0, solid(&raw));
    assert_eq!(world.device.messages().len(), 1);
}
