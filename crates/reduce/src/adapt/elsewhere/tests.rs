use super::*;

const BLOCK: usize = 256 << 10;

/// The places of so many windows, on a device that takes this long for a byte and leaves so much
/// of it as numbers and as bytes, beside a process that takes `here_s`.
fn places(windows: usize, elem: u8, [numbers, bytes]: [f64; 2], here_s: f64) -> Vec<Place> {
    let mut elsewhere = Elsewhere::new();
    let there_s = |_: f64, share: f64| share;
    let mut places = Vec::new();
    for _ in 0..windows {
        for block in 0..WINDOW_BYTES as usize / BLOCK {
            let place = elsewhere.place(elem, BLOCK, here_s, there_s);
            if block == 0 {
                places.push(place);
            }
            let share = match place {
                Place::Numbers => numbers,
                Place::Bytes => bytes,
                Place::Here => continue,
            };
            let stored = (BLOCK as f64 * share) as usize;
            elsewhere.end(elem, place, Some((BLOCK, stored)));
        }
    }
    places
}

#[test]
fn every_way_is_tried_and_the_best_one_stays() {
    for (costs, here_s, best) in [
        ([0.5, 0.7], 0.6, Place::Numbers),
        ([0.7, 0.5], 0.6, Place::Bytes),
        ([0.7, 0.8], 0.6, Place::Here),
    ] {
        let places = places(70, 8, costs, here_s);
        assert_eq!(places[..3], PLACES);
        let others: Vec<usize> = (3..70).filter(|at| places[*at] != best).collect();
        assert!(others.iter().all(|at| at % TRIAL_WINDOWS == 0), "{others:?}");
    }
}

#[test]
fn bytes_of_no_known_size_are_never_taken_for_numbers() {
    let places = places(200, 0, [0.1, 0.5], 0.6);
    assert!(!places.contains(&Place::Numbers) && places[..2] == [Place::Bytes, Place::Here]);
}

#[test]
fn a_device_that_takes_nothing_is_left_alone() {
    let mut elsewhere = Elsewhere::new();
    let blocks = WINDOW_BYTES as usize / BLOCK * 10;
    let taken = (0..blocks).filter(|_| {
        let place = elsewhere.place(8, BLOCK, 1.0, |_, _| 0.0);
        if place != Place::Here {
            elsewhere.end(8, place, None);
        }
        place != Place::Here
    });
    assert_eq!(taken.count(), 2 * WINDOW_BYTES as usize / BLOCK, "a window of each place");
}
