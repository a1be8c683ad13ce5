use super::*;

#[test]
fn a_place_without_its_option_gets_a_tip() {
    let said = |arg: &str| {
        let parsed = command().try_get_matches_from(["standfast", "ls", arg]);
        with_tip(parsed.unwrap_err()).to_string()
    };
    assert!(said("/").contains("tip: stores are named by an option: '--store /'"));
    assert!(said("s3://runs/heat").contains("'--store s3://runs/heat'"));
    assert!(!said("/no/such/place").contains("--store"));
}

#[test]
fn the_definition_is_consistent() {
    command().debug_assert();
}

#[test]
fn every_visible_command_has_its_page() {
    let command = command();
    for own in command.get_subcommands().filter(|own| !own.is_hide_set()) {
        let name = own.get_name();
        assert!(manual::PAGES.iter().any(|page| page.command == name), "{name} has no page");
    }
}
