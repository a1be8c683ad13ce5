use std::sync::mpsc::channel;
use std::time::Duration;

use standfast_store::{MemoryStore, Store};
use standfast_testkit::run_threads;

use super::*;
use crate::Job;
use crate::config::Loaded;

#[test]
fn a_catalog_that_one_rank_has_to_load_is_loaded_by_all() {
    let (end, ended) = channel();
    std::thread::spawn(move || {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        run_threads(3, |comm| {
            let loaded = Loaded::load(&[("lab.page".into(), "1KiB".into())]).unwrap();
            let job = Job::open_store_comm(loaded, Arc::clone(&store), &comm).unwrap();
            let field = job.alloc::<u64>("field", 4096).unwrap();
            for step in 0..3 {
                field.write().iter_mut().zip(step..).for_each(|(word, at)| *word = at);
                job.checkpoint(None).unwrap();
                job.settle().unwrap();
                if job.rank().0.0 == 1 {
                    job.core().settled_memory().unwrap().forget_all();
                }
            }
            field.write().fill(0);
            job.restart().unwrap().unwrap();
            assert!(field.read().iter().copied().eq(2..2 + 4096));
        });
        end.send(()).unwrap();
    });
    ended.recv_timeout(Duration::from_secs(60)).expect("the ranks do not wait for each other");
}
