use super::*;

#[test]
fn larger_blocks_never_cost_more() {
    let cost = StarCost::new(1e-4, 2.5e9, 1e9).unwrap();
    let times = [1e4, 1e6, 1e7, 1e9].map(|block| cost.time_s(1e9, 4, block).unwrap());
    assert!(times.windows(2).all(|pair| pair[1] <= pair[0]), "{times:?}");
    let text = StarCost::new(0.0, 0.0, 1.0).unwrap_err().to_string();
    assert!(text.contains("network_bps"), "{text}");
}

/// Plays every message, product and sum of one node, one after the other.
#[test]
fn played_step_by_step_the_time_is_the_same() {
    let (latency, network, multiply) = (1e-4, 2.5e9, 1e9);
    let cost = StarCost::new(latency, network, multiply).unwrap();
    for (bytes, block, shards) in [(1e8, 1e6, 3u64), (7e7, 1e7, 8)] {
        let mut clock = 0.0;
        let mut encoded = 0.0;
        while encoded < bytes {
            for _ in 0..shards {
                clock += latency + block / network;
                clock += block / multiply;
                clock += block / multiply;
            }
            encoded += block;
        }
        let formula = cost.time_s(bytes, shards, block).unwrap();
        assert!((clock / formula - 1.0).abs() < 1e-9, "{clock} {formula}");
    }
}
