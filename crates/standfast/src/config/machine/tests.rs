use super::*;

#[test]
fn free_memory_is_read_as_the_kernel_writes_it() {
    let meminfo = "MemTotal:       24576000 kB\nMemFree: 1 kB\nMemAvailable:   23068672 kB\n";
    assert_eq!(available(meminfo), Some(23_068_672 << 10));
    assert_eq!(available("MemAvailable: many kB"), None);
    assert_eq!(available(""), None);
}

#[test]
fn limits_of_all_groups_above_count() {
    let dirs = |text: &str| -> Vec<String> {
        group_dirs(text).iter().map(|dir| dir.display().to_string()).collect()
    };
    let v2 = "/sys/fs/cgroup/a/b,/sys/fs/cgroup/a,/sys/fs/cgroup";
    assert_eq!(dirs("0::/a/b").join(","), v2);
    let v1 = "4:cpu,cpuacct:/x\n3:memory:/job";
    assert_eq!(dirs(v1)[..2], ["/sys/fs/cgroup/memory/job", "/sys/fs/cgroup/memory"]);
    assert_eq!(dirs("0::/../../etc")[0], "/sys/fs/cgroup", "nothing outside is read");
    assert!(dirs("garbage\n1:name\n").is_empty());
}

#[test]
fn what_a_group_has_left_is_its_limit_less_what_it_uses_without_cache() {
    let dir = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    assert_eq!(left(dir.path()), None);
    put("memory.max", "max\n");
    put("memory.current", "300\n");
    assert_eq!(left(dir.path()), None);
    put("memory.max", "1000\n");
    assert_eq!(left(dir.path()), Some(700));
    put("memory.stat", "anon 100\ninactive_file 200\n");
    assert_eq!(left(dir.path()), Some(900));
    put("memory.current", "5000\n");
    assert_eq!(left(dir.path()), Some(0));
}

#[test]
fn this_machine_has_memory() {
    let here = Machine::here(3);
    assert_eq!(here.ranks, 3);
    assert!(here.free_bytes > 0);
}
