//! Both answers, byte by byte.

use std::path::Path;

use serde_json::json;
use standfast_admin::Digest;

use crate::failure::{Failure, Result};
use crate::output::{BAD, GOOD, Output};

/// Compares the answer of a disturbed run with that of an undisturbed one, and tells.
pub(super) fn compare(undisturbed: &Path, restarted: &Path, output: &Output) -> Result<bool> {
    let read = |path: &Path| {
        std::fs::read(path).map_err(|error| Failure::os("read", path.display(), error))
    };
    let (a, b) = (read(undisturbed)?, read(restarted)?);
    let (digest_a, digest_b) = (Digest::of(&a).to_string(), Digest::of(&b).to_string());
    let identical = a == b && !a.is_empty();
    let fields = json!({
        "identical": identical, "bytes": b.len(), "digest": digest_b,
        "digest_undisturbed": digest_a,
    });
    output.record("compared", fields)?;
    output.line(format_args!("   undisturbed  blake3 {digest_a}"))?;
    output.line(format_args!("   restarted    blake3 {digest_b}"))?;
    if identical {
        let good = output.paint(GOOD, "identical");
        output.line(format_args!("   {good}: all {} bytes are equal", b.len()))?;
        return Ok(true);
    }
    let differ = a.iter().zip(&b).filter(|(a, b)| a != b).count() + a.len().abs_diff(b.len());
    output.line(format_args!("   {}: {differ} bytes", output.paint(BAD, "DIFFERENT")))?;
    Ok(false)
}
