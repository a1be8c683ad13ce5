use super::*;
use crate::MemoryStore;

#[test]
fn parts_are_read_together_and_never_written() {
    let parts = [MemoryStore::new(), MemoryStore::new()];
    parts[0].put("both", b"first").unwrap();
    parts[1].put("both", b"second, longer").unwrap();
    parts[1].put("images/one", b"1").unwrap();
    let parts = parts.map(|part| Arc::new(part) as Arc<dyn Store>);
    let all = UnionStore::new(parts.to_vec());
    assert_eq!(all.get("both", 100).unwrap(), b"first");
    assert_eq!(all.get("images/one", 100).unwrap(), b"1");
    assert_eq!(all.get("neither", 100).unwrap_err().kind(), Kind::Missing);
    let names: Vec<_> = all.list("").unwrap().into_iter().map(|object| object.name).collect();
    assert_eq!(names, ["both", "images/one"]);
    assert_eq!(all.put("new", b"").unwrap_err().kind(), Kind::Unsupported);
    assert_eq!(all.remove("both").unwrap_err().kind(), Kind::Unsupported);
    assert_eq!(all.lock(Lock::Writer).unwrap_err().kind(), Kind::Unsupported);
    let held = all.lock(Lock::ReadShared).unwrap();
    assert_eq!(parts[1].lock(Lock::ReadExclusive).unwrap_err().kind(), Kind::Busy);
    drop(held);
    let _free = parts[1].lock(Lock::ReadExclusive).unwrap();
}
