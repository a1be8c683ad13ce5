use super::*;

#[test]
fn pieces_tell_where_the_message_ends() {
    let message: Vec<u8> = (0..100).collect();
    for full in 1..110 {
        for length in 0..=message.len() {
            let pieces: Vec<&[u8]> = cut(&message[..length], full).collect();
            assert_eq!(pieces.concat(), message[..length]);
            let (last, others) = pieces.split_last().unwrap();
            assert!(!more_follow(last.len(), full) && last.len() < full);
            assert!(others.iter().all(|piece| more_follow(piece.len(), full)));
        }
    }
}
