use super::*;

#[test]
fn hexadecimal_leads_back() {
    let id = AttemptId([0, 1, 0x7f, 0x80, 0xff, 5, 6, 7]);
    assert_eq!(id.to_string(), "00017f80ff050607");
    assert_eq!(AttemptId::from_hex(&id.to_string()), Some(id));
    for bad in ["", "00", "00017F80FF050607", "zz017f80ff050607", "00017f80ff05060708"] {
        assert_eq!(AttemptId::from_hex(bad), None, "{bad}");
    }
}
