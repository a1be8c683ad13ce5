use super::*;

fn share(text: &str) -> Share {
    text.parse().unwrap_or_else(|why| panic!("{why}"))
}

#[test]
fn a_group_and_users_are_read_and_shown() {
    for text in ["private", "group", "physics", "private, from alice", "physics, from a, from 12"] {
        assert_eq!(share(text).to_string(), text);
    }
    assert_eq!(share("from alice").to_string(), "private, from alice");
    assert_eq!(share("private"), Share::default());
    for bad in ["", "private, group", "from", "from a b", "a b", ",", "private,", "from a, b, c"] {
        assert!(bad.parse::<Share>().is_err(), "{bad:?}");
    }
}

#[test]
fn names_mean_what_the_machine_says() {
    assert_eq!(share("private").trust(), Ok(Trust::default()));
    assert_eq!(share("from root, from 4711").trust().unwrap().users, [0, 4711]);
    let own = rustix::process::getegid().as_raw();
    assert_eq!(share("group").trust().unwrap().group, Some(own));
    assert_eq!(share(&own.to_string()).trust().unwrap().group, Some(own));
    let why = share("no-such-group").trust().unwrap_err();
    assert!(why.contains("there is no group \"no-such-group\""), "{why}");
    let why = share("from no-such-user").trust().unwrap_err();
    assert!(why.contains("there is no user \"no-such-user\""), "{why}");
}
