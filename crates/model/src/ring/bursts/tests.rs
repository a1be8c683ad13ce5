use super::*;
use proptest::prelude::*;

#[test]
fn nonsense_is_named() {
    let text = Bursts::geometric(0.5).unwrap_err().to_string();
    assert!(text.contains("nodes_per_incident"), "{text}");
    let text = Bursts::new(vec![0.5, 0.4]).unwrap_err().to_string();
    assert!(text.contains("burst chances"), "{text}");
}

proptest! {
    #[test]
    fn bursts_are_distributions(mean in 1.0f64..20.0) {
        let bursts = Bursts::geometric(mean).unwrap();
        prop_assert!((bursts.chances().iter().sum::<f64>() - 1.0).abs() < 1e-9);
    }
}
