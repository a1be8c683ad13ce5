use super::*;

fn shards(count: usize, bytes: usize) -> Vec<Vec<u8>> {
    (0..count)
        .map(|shard| (0..bytes).map(|i| (((i * 31 + shard * 97) * 2_654_435) >> 7) as u8).collect())
        .collect()
}

fn refs(shards: &[Vec<u8>]) -> Vec<&[u8]> {
    shards.iter().map(Vec::as_slice).collect()
}

#[test]
fn the_largest_code_rebuilds_all_its_data_from_parity() {
    let code = Code::new(Family::Cauchy, 128, 128).unwrap();
    let data = shards(128, 33);
    let parity = multiply(code.parity(), &refs(&data));
    let present: Vec<usize> = (128..256).collect();
    let lost: Vec<usize> = (0..128).collect();
    let matrix = code.rebuild(&present, &lost).unwrap();
    assert_eq!(multiply(&matrix, &refs(&parity)), data);
}
