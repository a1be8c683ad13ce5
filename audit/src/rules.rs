//! The rules. Each gives its findings as sentences that say which package and why.

use std::collections::{BTreeMap, BTreeSet};

use crate::licence;
use crate::policy::{BANNED, DUPLICATES, LICENCE_EXCEPTIONS, LICENCES, REGISTRY};
use crate::tree::Tree;

/// All findings of all rules.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let rules = [licences, sources, checksums, pins, banned, duplicates];
    rules.iter().flat_map(|rule| rule(tree)).collect()
}

fn licences(tree: &Tree) -> Vec<String> {
    let is_bad = |package: &&crate::tree::Package| {
        let excepted = |licence: &str| {
            LICENCE_EXCEPTIONS.iter().any(|(name, of, _)| *name == package.name && *of == licence)
        };
        !licence::is_allowed(&package.licence, |one| LICENCES.contains(&one) || excepted(one))
    };
    tree.packages
        .iter()
        .filter(is_bad)
        .map(|p| {
            format!(
                "{} {} has the licence {:?}, which is not allowed",
                p.name, p.version, p.licence
            )
        })
        .collect()
}

fn sources(tree: &Tree) -> Vec<String> {
    let built = tree.packages.iter().map(|p| (&p.name, &p.source));
    let locked = tree.locked.iter().map(|p| (&p.name, &p.source));
    let foreign: BTreeSet<String> = built
        .chain(locked)
        .filter_map(|(name, source)| Some((name, source.as_deref()?)))
        .filter(|(_, source)| *source != REGISTRY)
        .map(|(name, source)| format!("{name} comes from {source}, not from crates.io"))
        .collect();
    foreign.into_iter().collect()
}

fn checksums(tree: &Tree) -> Vec<String> {
    let is_sum = |text: &String| text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
    tree.locked
        .iter()
        .filter(|p| p.source.is_some() && !p.checksum.as_ref().is_some_and(is_sum))
        .map(|p| format!("{} {} has no checksum in Cargo.lock", p.name, p.version))
        .collect()
}

fn pins(tree: &Tree) -> Vec<String> {
    let ours = tree.packages.iter().filter(|package| package.is_ours());
    ours.flat_map(|package| package.wants.iter().map(move |want| (&package.name, want)))
        .filter(|(_, want)| want.is_registry && !is_exact(&want.requirement))
        .map(|(package, want)| {
            format!("{package} wants {} {:?}, not one exact version", want.name, want.requirement)
        })
        .collect()
}

fn is_exact(requirement: &str) -> bool {
    let version = requirement.strip_prefix('=').map(str::trim);
    version.is_some_and(|version| !version.contains(',') && version.split('.').count() >= 3)
}

fn banned(tree: &Tree) -> Vec<String> {
    let why = |name: &str| BANNED.iter().find(|(of, _)| *of == name).map(|(_, why)| why);
    tree.packages
        .iter()
        .filter_map(|p| Some(format!("{} {} is banned: {}", p.name, p.version, why(&p.name)?)))
        .collect()
}

fn duplicates(tree: &Tree) -> Vec<String> {
    let mut versions: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for package in &tree.packages {
        versions.entry(&package.name).or_default().insert(package.compatible());
    }
    versions
        .into_iter()
        .filter(|(name, found)| {
            found.len() > 1 && !DUPLICATES.iter().any(|(allowed, _)| allowed == name)
        })
        .map(|(name, found)| {
            let found: Vec<String> = found.into_iter().collect();
            format!("{name} is built in several versions: {}", found.join(", "))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree that keeps every rule: one package of ours that wants one of crates.io.
    fn metadata(changed: impl Fn(&str) -> String) -> String {
        let good = format!(
            r#"{{"packages": [
                {{"name": "ours", "version": "0.1.0", "license": "MIT OR Apache-2.0",
                  "source": null,
                  "dependencies": [{{"name": "serde", "req": "=1.0.2", "path": null}},
                                   {{"name": "other", "req": "*", "path": "/here"}}]}},
                {{"name": "serde", "version": "1.0.2", "license": "MIT/Apache-2.0",
                  "source": "{REGISTRY}", "dependencies": []}}
            ]}}"#
        );
        changed(&good)
    }

    fn lock(checksum: &str, source: &str) -> String {
        format!(
            "[[package]]\nname = \"serde\"\nversion = \"1.0.2\"\nsource = \"{source}\"\n{checksum}\n\
             [[package]]\nname = \"ours\"\nversion = \"0.1.0\"\n"
        )
    }

    fn sound_lock() -> String {
        lock(&format!("checksum = \"{}\"", "ab".repeat(32)), REGISTRY)
    }

    fn findings(metadata: &str, lock: &str) -> Vec<String> {
        check(&Tree::parse(metadata, lock).unwrap())
    }

    /// The fabricated metadata with one text replaced must break exactly one rule.
    fn assert_found(from: &str, to: &str, word: &str) {
        let broken = metadata(|good| good.replacen(from, to, 1));
        assert_ne!(broken, metadata(str::to_owned), "{from} is not there");
        let found = findings(&broken, &sound_lock());
        assert!(found.len() == 1 && found[0].contains(word), "{to}: {found:?}");
    }

    #[test]
    fn a_sound_tree_has_no_findings() {
        assert_eq!(findings(&metadata(str::to_owned), &sound_lock()), Vec::<String>::new());
    }

    #[test]
    fn licences_must_be_on_the_list() {
        assert_found("MIT/Apache-2.0", "GPL-3.0", "GPL-3.0");
        assert_found("MIT/Apache-2.0", "", "licence");
        assert_found("MIT/Apache-2.0", "MPL-2.0", "MPL-2.0");
    }

    #[test]
    fn an_exception_is_for_one_package_only() {
        let excepted = metadata(|good| good.replace("MIT/Apache-2.0", "MPL-2.0"));
        let excepted = excepted.replace("\"serde\"", "\"cbindgen\"");
        assert_eq!(findings(&excepted, &sound_lock()), Vec::<String>::new());
    }

    #[test]
    fn other_sources_are_refused() {
        assert_found(REGISTRY, "git+https://example.org/serde", "example.org");
        let lock = lock(&format!("checksum = \"{}\"", "ab".repeat(32)), "registry+https://mirror");
        assert_eq!(findings(&metadata(str::to_owned), &lock).len(), 1);
    }

    #[test]
    fn checksums_must_be_there() {
        for checksum in ["", "checksum = \"abc\""] {
            let found = findings(&metadata(str::to_owned), &lock(checksum, REGISTRY));
            assert!(found.len() == 1 && found[0].contains("checksum"), "{found:?}");
        }
    }

    #[test]
    fn requirements_must_be_exact() {
        for loose in ["^1.0.2", "1.0.2", "=1", "=1.0", ">=1.0.2", "=1.0.2, <2", "*"] {
            assert_found("=1.0.2", loose, "exact");
        }
    }

    #[test]
    fn banned_packages_are_refused() {
        let banned = metadata(|good| good.replace("\"serde\"", "\"openssl\""));
        let found = findings(&banned, &sound_lock());
        assert!(found.len() == 1 && found[0].contains("banned"), "{found:?}");
    }

    #[test]
    fn a_second_major_version_is_refused() {
        let third = format!(
            r#", {{"name": "serde", "version": "2.1.0", "license": "MIT",
                   "source": "{REGISTRY}", "dependencies": []}}]}}"#
        );
        let twice = |text: &str| metadata(|good| good.replacen("\n            ]}", text, 1));
        let found = findings(&twice(&third), &sound_lock());
        assert!(found.len() == 1 && found[0].contains("several versions"), "{found:?}");
        let compatible = third.replace("2.1.0", "1.9.0");
        assert_eq!(findings(&twice(&compatible), &sound_lock()), Vec::<String>::new());
    }
}
