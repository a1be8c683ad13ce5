//! Settings of a test: its own over those of its world.

/// Each name once, with the last of its values: a job refuses names that are set twice.
pub fn last_of_each<N: PartialEq, T>(settings: impl IntoIterator<Item = (N, T)>) -> Vec<(N, T)> {
    let mut last: Vec<(N, T)> = Vec::new();
    for (name, value) in settings {
        last.retain(|(before, _)| *before != name);
        last.push((name, value));
    }
    last
}
