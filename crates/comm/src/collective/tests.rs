use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn joined_messages_come_apart(parts in proptest::collection::vec(any::<Vec<u8>>(), 0..9)) {
        prop_assert_eq!(cut(&join(&parts)), Some(parts));
    }

    #[test]
    fn garbage_is_refused_or_cut(bytes: Vec<u8>) {
        if let Some(parts) = cut(&bytes) {
            prop_assert_eq!(join(&parts), bytes);
        }
    }
}
