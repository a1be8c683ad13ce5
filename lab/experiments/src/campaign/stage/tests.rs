use super::*;

#[test]
fn acts_on_files_show_stages() {
    for (act, path, stage) in [
        (Act::Make, "/t/disk/n0/job/segments/5f~1-0.part", Some(Stage::Pack)),
        (Act::Remove, "/t/disk/n0/job/segments/5f~1-0.part", None),
        (Act::Name, "/t/disk/n0/job/segments/5f", Some(Stage::Commit)),
        (Act::Name, "/t/disk/n0/job/manifests/v1.local", Some(Stage::Commit)),
        (Act::Remove, "/t/disk/n0/job/manifests/v1.local", Some(Stage::Prune)),
        (Act::Make, "/t/disk/n1/job/shards/v1-8d/1~1-0.part", Some(Stage::Encode)),
        (Act::Make, "/t/global-0/job/segments/5f~1-0.part", Some(Stage::Drain)),
        (Act::Remove, "/t/global-0/job/segments/5f", Some(Stage::Prune)),
        (Act::Remove, "/t/global-0/job/parts/v1-8d/rank-000000", Some(Stage::Drain)),
        (Act::Make, "/t/disk/n0/job/lock.writer", None),
        (Act::Read, "/t/disk/n0/job/segments/5f", None),
        (Act::Make, "/t/meeting/0", None),
    ] {
        assert_eq!(of_file(act, path), stage, "{act:?} {path}");
    }
}

#[test]
fn requests_show_stages() {
    let (act, path) = request(b"PUT /b/c-0/job/segments/5f?partNumber=1 HTTP/1.1\r\n").unwrap();
    assert_eq!(of_request(act, path), Some(Stage::Drain));
    let (act, path) = request(b"DELETE /b/c-0/job/images/v1-8d/r HTTP/1.1\r\nHost").unwrap();
    assert_eq!(of_request(act, path), Some(Stage::Prune));
    let (act, path) = request(b"PUT /b/c-0/job/lock.read.1 HTTP/1.1\r\n").unwrap();
    assert_eq!(of_request(act, path), None);
    assert_eq!(request(b"PUT is not all of it"), None);
    assert_eq!(request(b"\x00\xff\r"), None);
}
