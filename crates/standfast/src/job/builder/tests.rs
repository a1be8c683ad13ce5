use super::*;
use crate::config::KEYS;

#[test]
fn every_word_has_a_method_and_the_last_value_counts() {
    let job = Job::builder().store("/nowhere").store("memory:").job("a").keep(Retention::ALL);
    let job = job.share(Share::default()).global_key("!printf '%064d' 7");
    let job = job.capture(Capture::Stop).memory(8 << 20).codec(Codec::none());
    let job = job.gpu(GpuUse::Off).agent(AgentUse::Off).interval(Pacing::Auto(None));
    let job = job.signal(Signal::USR1).restart(Restart::Eager).ring(NodeLosses::NONE);
    let job = job.global("/g").global_keep(Retention::ALL).global_rate(Rate(ByteSize(9)));
    let mut named: Vec<&str> = job.words.iter().map(|(name, _)| name.as_str()).collect();
    let mut known: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
    named.sort_unstable();
    known.sort_unstable();
    assert_eq!(named, known);
    let job = job.global_keep(Retention { newest: Some(2), ..Retention::ALL }).open().unwrap();
    let settings = &job.config().settings;
    assert_eq!(settings.place.store, "memory:");
    assert_eq!(settings.levels.global_keep.newest, Some(2));
}
