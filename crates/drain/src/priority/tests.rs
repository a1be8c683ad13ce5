use super::*;

#[test]
fn cores_are_read_and_shown() {
    for (text, shown) in [("", ""), ("0,2-3", "0,2-3"), ("3,2,2,0", "0,2-3"), ("7", "7")] {
        assert_eq!(text.parse::<Cores>().unwrap().to_string(), shown, "{text}");
    }
    for text in ["a", "3-1", "0,", "2000", "-", "1-2-3"] {
        assert!(text.parse::<Cores>().is_err(), "{text}");
    }
}

#[test]
fn priorities_of_disks_are_read_and_shown() {
    for text in ["idle", "0", "7"] {
        assert_eq!(text.parse::<IoPriority>().unwrap().to_string(), text);
    }
    for text in ["", "8", "-1", "best"] {
        assert!(text.parse::<IoPriority>().is_err(), "{text}");
    }
}

/// What the kernel says of the calling thread.
fn told() -> (libc::c_long, i32, bool, i32) {
    // SAFETY: two numbers; 1 is a process, 0 the calling thread.
    let io = unsafe { libc::syscall(libc::SYS_ioprio_get, 1, 0) };
    let nice = rustix::process::getpriority_process(None).unwrap();
    let set = rustix::thread::sched_getaffinity(None).unwrap();
    // SAFETY: a number; 0 is the calling thread.
    let class = unsafe { libc::sched_getscheduler(0) };
    (io, nice, set.count() == 1, class)
}

#[test]
fn threads_that_are_started_later_step_back_as_much() {
    let stepping_back = std::thread::spawn(|| {
        let before = rustix::process::getpriority_process(None).unwrap();
        let set = rustix::thread::sched_getaffinity(None).unwrap();
        let core = (0..CORES_MAX).find(|core| set.is_set(*core)).unwrap();
        let priority = Priority {
            nice: before.max(15),
            io: IoPriority::Idle,
            cores: core.to_string().parse().unwrap(),
        };
        priority.take().unwrap();
        let own = told();
        assert_eq!(own, (3 << 13, before.max(15), true, libc::SCHED_BATCH));
        assert_eq!(std::thread::spawn(told).join().unwrap(), own);
    });
    stepping_back.join().unwrap();
}
