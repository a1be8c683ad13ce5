use super::*;
use crate::plan::bench;

#[test]
fn every_input_is_listed_with_its_source() {
    let mut sourced = Sourced::assumed();
    sourced.scheduler(&Allocation {
        nodes: 7,
        source: "SLURM_NNODES",
        ranks_per_node: Some((4, "SLURM_NTASKS_PER_NODE")),
    });
    let line = r#"{"type":"bench","name":"memcpy","value":8.0,"unit":"GB/s"}"#;
    assert!(sourced.bench(&bench::parse(line).unwrap(), "b.json"));
    sourced.note("mtti_s", "--mtti");
    let fields = sourced.fields();
    let of = |name| fields.iter().find(|field| field.name == name).unwrap();
    assert_eq!((of("nodes").value.as_str(), of("nodes").source.as_str()), ("7", "SLURM_NNODES"));
    assert_eq!(of("ranks_per_node").value, "4");
    assert!(sourced.knows("nodes") && !sourced.knows("survival"));
    assert_eq!(of("capture_bps").source, "b.json: memcpy");
    assert_eq!(of("mtti_s").source, "--mtti");
    assert_eq!(of("survival").source, "assumed");
    let all = serde_json::to_value(&sourced.inputs).unwrap();
    let listed: Vec<&str> = fields.iter().map(|field| field.name).collect();
    assert_eq!(listed.len(), all.as_object().unwrap().len());
    assert!(listed.iter().all(|name| all.get(name).is_some()), "{listed:?}");
}
