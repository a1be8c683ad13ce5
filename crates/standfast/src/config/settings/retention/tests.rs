use super::*;

#[test]
fn parts_come_in_any_order_and_once() {
    let all = Retention { newest: Some(3), bytes: Some(ByteSize(1 << 30)), every: Some(10) };
    for text in ["3, 1GiB, every 10", "every 10,1GiB,3", "1 GiB, 3, every  10"] {
        assert_eq!(text.parse(), Ok(all), "{text}");
    }
    assert_eq!(all.to_string(), "3, 1GiB, every 10");
    assert_eq!("all".parse(), Ok(Retention::ALL));
    assert_eq!("every 4".parse(), Ok(Retention { every: Some(4), ..Retention::ALL }));
    for bad in ["", "0", "3, 4", "all, 3", "1GiB, 2GiB", "every", "every 0", "0B", "many", "-1"] {
        assert!(bad.parse::<Retention>().is_err(), "{bad}");
    }
}
