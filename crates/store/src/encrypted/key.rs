//! Keys: the store's, which is read once and kept out of sight, and one for each object.

use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use standfast_format::Fingerprint;
use standfast_format::encrypted::{EncryptedTail, TAG_BYTES};
use standfast_sys::Secret;

const KEY_BYTES: usize = 32;
/// The nonce of a tail: no chunk has this number.
const TAIL_NUMBER: u64 = u64::MAX;

/// What encrypts a store. Never shown, written or sent.
#[derive(Clone)]
pub struct Key {
    secret: Arc<Secret>,
    fingerprint: Fingerprint,
}

impl Key {
    /// Reads 64 hexadecimal digits; `None` if there is anything else but space around them.
    pub fn read(mut from: impl Read) -> io::Result<Option<Self>> {
        // Read straight into the page where it stays: no other copy is left behind.
        let mut secret = Secret::new();
        let mut filled = 0;
        while filled < secret.len() {
            match from.read(&mut secret[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if !decode(&mut secret, filled) {
            return Ok(None);
        }
        secret.wipe(KEY_BYTES);
        let mut fingerprint = [0; 8];
        let derived = root(&secret);
        let derived = derived.expand(&[b"fingerprint"], Bytes(fingerprint.len()));
        derived.and_then(|bytes| bytes.fill(&mut fingerprint)).expect("a length within the limit");
        Ok(Some(Self { secret: Arc::new(secret), fingerprint: Fingerprint(fingerprint) }))
    }

    /// Tells it from other keys.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The key of one object.
    pub(super) fn of_object(&self, salt: &[u8; 24], name: &str) -> ObjectKey {
        let root = root(&self.secret);
        let parts: [&[u8]; 3] = [b"object", salt, name.as_bytes()];
        let derived = root.expand(&parts, &AES_256_GCM).expect("a length within the limit");
        ObjectKey(LessSafeKey::new(UnboundKey::from(derived)))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.fingerprint)
    }
}

fn root(secret: &Secret) -> Prk {
    Salt::new(HKDF_SHA256, b"standfast encrypted store").extract(&secret[..KEY_BYTES])
}

struct Bytes(usize);

impl KeyType for Bytes {
    fn len(&self) -> usize {
        self.0
    }
}

/// Turns digits at the start into bytes there.
fn decode(text: &mut [u8], filled: usize) -> bool {
    let trimmed = text[..filled].trim_ascii();
    if filled == text.len() || trimmed.len() != 2 * KEY_BYTES {
        return false;
    }
    let skip = text[..filled].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let nibble = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    for at in 0..KEY_BYTES {
        let pair = (nibble(text[skip + 2 * at]), nibble(text[skip + 2 * at + 1]));
        let (Some(high), Some(low)) = pair else { return false };
        text[at] = high << 4 | low;
    }
    true
}

/// Encrypts the chunks of one object.
pub(super) struct ObjectKey(LessSafeKey);

impl ObjectKey {
    /// Encrypts a chunk in place; its tag is stored behind it.
    pub(super) fn encrypt(&self, number: u64, chunk: &mut [u8]) -> [u8; TAG_BYTES] {
        let tag = self.0.seal_in_place_separate_tag(nonce(number), Aad::empty(), chunk);
        tag.expect("chunks are short").as_ref().try_into().expect("16 bytes")
    }

    /// Decrypts a chunk, with its tag behind it, in place; `None` if it is not what was written there.
    pub(super) fn decrypt<'a>(&self, number: u64, chunk: &'a mut [u8]) -> Option<&'a [u8]> {
        Some(self.0.open_in_place(nonce(number), Aad::empty(), chunk).ok()?)
    }

    /// The tail with its tag.
    pub(super) fn close(&self, tail: EncryptedTail, plain_bytes: u64) -> EncryptedTail {
        let proven = Aad::from(tail.proven(plain_bytes));
        let tag = self.0.seal_in_place_separate_tag(nonce(TAIL_NUMBER), proven, &mut []);
        let tag = tag.expect("nothing is short").as_ref().try_into().expect("16 bytes");
        EncryptedTail { tag, ..tail }
    }

    /// Whether a tail belongs to an object that holds so many bytes.
    pub(super) fn proves(&self, tail: &EncryptedTail, plain_bytes: u64) -> bool {
        let proven = Aad::from(tail.proven(plain_bytes));
        self.0.open_in_place(nonce(TAIL_NUMBER), proven, &mut { tail.tag }).is_ok()
    }
}

fn nonce(number: u64) -> Nonce {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&number.to_le_bytes());
    Nonce::assume_unique_for_key(nonce)
}
