//! The family as today's code writes it, through an archive and back.

use golden_stores::{archive, read, write};

#[test]
fn what_is_written_now_is_read_now() {
    let dir = tempfile::tempdir().unwrap();
    write::family(&dir.path().join("written")).unwrap();
    let packed = archive::pack(&dir.path().join("written")).unwrap();
    println!("{} bytes packed", packed.len());
    archive::unpack(&packed, &dir.path().join("unpacked")).unwrap();
    read::family(&dir.path().join("unpacked")).unwrap();
}
