use super::*;

fn nodes(name: &str, value: &str) -> Result<Option<u64>> {
    let environment = BTreeMap::from([(name.to_owned(), value.to_owned())]);
    Ok(allocation(&environment)?.map(|found| found.nodes))
}

#[test]
fn three_schedulers_are_understood() {
    assert_eq!(nodes("SLURM_JOB_NUM_NODES", "128").unwrap(), Some(128));
    assert_eq!(nodes("PBS_NUM_NODES", " 4 ").unwrap(), Some(4));
    assert_eq!(nodes("LSB_MCPU_HOSTS", "a 4 b 4 c 2").unwrap(), Some(3));
    assert_eq!(nodes("LSB_HOSTS", "a a b").unwrap(), Some(2));
    assert_eq!(nodes("HOME", "/root").unwrap(), None);
}

#[test]
fn ranks_per_node_come_as_counts_and_lists() {
    let ranks = |name: &str, value: &str| {
        let nodes = ("SLURM_NNODES".to_owned(), "4".to_owned());
        let environment = BTreeMap::from([nodes, (name.to_owned(), value.to_owned())]);
        Ok::<_, ModelError>(allocation(&environment)?.unwrap().ranks_per_node)
    };
    let slurm = "SLURM_TASKS_PER_NODE";
    assert_eq!(ranks("SLURM_NTASKS_PER_NODE", "32").unwrap().unwrap().0, 32);
    assert_eq!(ranks(slurm, "16(x3),8").unwrap(), Some((16, slurm)));
    assert_eq!(ranks("HOME", "/root").unwrap(), None);
    for nonsense in ["", "many", "4,,4", "0"] {
        assert!(ranks(slurm, nonsense).unwrap_err().to_string().contains(slurm));
    }
}

#[test]
fn nonsense_names_the_variable() {
    for (name, value) in [
        ("SLURM_JOB_NUM_NODES", "many"),
        ("PBS_NUM_NODES", "0"),
        ("LSB_MCPU_HOSTS", "a 4 b"),
        ("LSB_HOSTS", " "),
    ] {
        let text = nodes(name, value).unwrap_err().to_string();
        assert!(text.contains(name), "{text}");
    }
}
