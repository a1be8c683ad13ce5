use super::*;

#[test]
fn messages_lead_back() {
    let messages = [
        Message::Started { step: 5, version: Some(2), passed_over: 1 },
        Message::Checkpoint { version: 3, step: 7, stats: Stats::default() },
        Message::Finished { steps: 9, seconds: 0.5 },
    ];
    for message in messages {
        let line = serde_json::to_string(&message).unwrap();
        assert_eq!(serde_json::from_str::<Message>(&line).unwrap(), message);
    }
}
