#!/usr/bin/env bash
# Prints the public interface of the crate `standfast`, as its reference shows it: what is declared, the
# methods, and the traits that types have. Compared with crates/standfast/api.txt by `make release-check`;
# `scripts/api.sh >crates/standfast/api.txt` takes a change over.
#
# Why from the reference: it leaves out what is hidden, and stable Rust writes it.
set -euo pipefail
cd "$(dirname "$0")/.."

docs=${CARGO_TARGET_DIR:-target}/doc/standfast
rm -rf "$docs"
"${CARGO:-cargo}" doc --locked -q -p standfast --lib --no-deps

# One element on a line, without what the standard library lends; then those that declare something,
# without their tags.
signatures() {
    tr '\n' ' ' <"$1" |
        sed -E 's/<h2 id="deref-methods.*(<h2 id="trait-implementations)/\1/; s/<h2 id="(blanket|synthetic)-implementations.*//; s/<(pre|h3|h4)/\n&/g; s/<\/(pre|h3|h4)>/&\n/g' |
        sed -n -E '/<(pre class="rust item-decl"|h3 class="code-header"|h4 class="code-header")/p' |
        sed -E 's/<[^>]*>//g; s/&lt;/</g; s/&gt;/>/g; s/&amp;/\&/g; s/&#39;/'"'"'/g; s/&quot;/"/g; s/[[:space:]]+/ /g; s/^ | $//g' |
        sed -n -E '/^(pub |impl|unsafe |#\[)/p' |
        sort -u
}

find "$docs" -name '*.*.html' | LC_ALL=C sort | while read -r page; do
    name=${page#"$docs"/}
    found=$(LC_ALL=C signatures "$page")
    # Pages that only lead to others declare nothing.
    [ -z "$found" ] || printf '%s\n' "${name%.html}" "$found" | sed '2,$s/^/    /'
done
