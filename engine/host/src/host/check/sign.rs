//! The host's signing key: made on first use, in a file that only its user can read.
//!
//! Owns the format of the key file (64 hexadecimal digits and a newline) and the ed25519 calls.
//! Cold; reads one small file. Never overwrites a key, and never uses one that others could have
//! read.
//!
//! # Why the key is written to another file and linked
//! If two programs use the key first at the same moment, both must end with the same key. Each
//! writes a complete file of its own, and only one link to the final name succeeds. Nobody can read
//! an incomplete key.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::private;
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};

/// Longest key file read, bytes.
const FILE_BYTES_MAX: u64 = 256;

/// Why the host key cannot be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum KeyError {
    #[error("host key {}: {step} failed ({source}), expected to keep one there; free the place or set \
        XDG_STATE_HOME", path.display())]
    Io { step: &'static str, path: PathBuf, source: io::Error },
    #[error("host key {}: found mode {mode:o} of user {owner}, expected 600 of the user who runs this; move \
        it away, a new one is made", path.display())]
    Exposed { path: PathBuf, mode: u32, owner: u32 },
    #[error("host key {}: expected 64 hexadecimal digits; move the file away, and a new key is made", path.display())]
    Malformed { path: PathBuf },
}

/// Why a signature is not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum SignatureError {
    #[error("the report is not signed: it was written without a host key")]
    Unsigned,
    #[error(
        "the signature or the key is malformed, expected 128 and 64 hexadecimal digits; get the report from \
        its source again"
    )]
    Malformed,
    #[error("the signature does not match the rows; the report was changed")]
    Broken,
}

/// The key of this host and user.
#[derive(Debug)]
pub struct HostKey(SigningKey);

impl HostKey {
    /// The key in the file `path`, made if the file does not exist.
    ///
    /// # Errors
    /// If the file cannot be read or made, or others could have read it.
    pub fn load_or_make(path: &Path) -> Result<HostKey, KeyError> {
        match load(path) {
            Err(KeyError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                make(path)?;
                load(path)
            }
            other => other,
        }
    }

    /// The public key in hexadecimal.
    pub fn public(&self) -> String {
        hex(self.0.verifying_key().as_bytes())
    }

    /// The signature of `text` in hexadecimal.
    pub fn sign(&self, text: &[u8]) -> String {
        hex(&self.0.sign(text).to_bytes())
    }
}

/// Checks that `signature` was made for `text` with the private half of `key`.
///
/// # Errors
/// If it was not.
pub fn verify(text: &[u8], signature: &str, key: &str) -> Result<(), SignatureError> {
    let (signature, key) = unhex::<64>(signature).zip(unhex::<32>(key)).ok_or(SignatureError::Malformed)?;
    let key = VerifyingKey::from_bytes(&key).map_err(|_| SignatureError::Malformed)?;
    key.verify_strict(text, &Signature::from_bytes(&signature)).map_err(|_| SignatureError::Broken)
}

fn load(path: &Path) -> Result<HostKey, KeyError> {
    let failed = |source: io::Error| KeyError::Io { step: "reading", path: path.to_owned(), source };
    let file = private::open(path).map_err(failed)?;
    if let Some((mode, owner)) = private::exposed(&file).map_err(failed)? {
        return Err(KeyError::Exposed { path: path.to_owned(), mode, owner });
    }
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(failed)?;
    let bytes = unhex::<32>(text.trim_end()).ok_or_else(|| KeyError::Malformed { path: path.to_owned() })?;
    Ok(HostKey(SigningKey::from_bytes(&bytes)))
}

fn make(path: &Path) -> Result<(), KeyError> {
    let failed = |step| move |source: io::Error| KeyError::Io { step, path: path.to_owned(), source };
    if let Some(dir) = path.parent() {
        private::directory(dir).map_err(failed("making its directory"))?;
    }
    let secret = private::secret().map_err(failed("drawing it"))?;
    let aside = path.with_extension(format!("key.{}", std::process::id()));
    // An earlier process with the same number may have left an incomplete file.
    let _ = fs::remove_file(&aside);
    let mut file = private::create(&aside).map_err(failed("making it"))?;
    let written = writeln!(file, "{}", hex(&secret)).and_then(|()| file.sync_all());
    let linked = written.and_then(|()| fs::hard_link(&aside, path));
    let _ = fs::remove_file(&aside);
    match linked {
        // Another program made the key first: use that one.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other.map_err(failed("keeping it")),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex<const BYTES: usize>(text: &str) -> Option<[u8; BYTES]> {
    let digits = text.as_bytes();
    if digits.len() != BYTES * 2 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let mut bytes = [0; BYTES];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "harness")]
    use super::{HostKey, KeyError, SignatureError, hex, unhex, verify};
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_key_is_made_once_and_only_its_user_can_read_it() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("state/pinwheel/host.key");
        let first = HostKey::load_or_make(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        assert_eq!(HostKey::load_or_make(&path).unwrap().public(), first.public());
        let other = HostKey::load_or_make(&home.path().join("other.key")).unwrap();
        assert_ne!(other.public(), first.public());
    }

    #[test]
    fn a_signature_holds_for_its_text_and_key_only() {
        let home = tempfile::tempdir().unwrap();
        let key = HostKey::load_or_make(&home.path().join("host.key")).unwrap();
        let other = HostKey::load_or_make(&home.path().join("other.key")).unwrap();
        let signature = key.sign(b"rows");
        assert_eq!(verify(b"rows", &signature, &key.public()), Ok(()));
        assert_eq!(verify(b"Rows", &signature, &key.public()), Err(SignatureError::Broken));
        assert_eq!(verify(b"rows", &signature, &other.public()), Err(SignatureError::Broken));
        assert_eq!(verify(b"rows", &signature[1..], &key.public()), Err(SignatureError::Malformed));
        assert_eq!(verify(b"rows", &signature, "ü"), Err(SignatureError::Malformed));
    }

    #[test]
    fn a_key_that_others_could_read_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("host.key");
        HostKey::load_or_make(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = HostKey::load_or_make(&path).unwrap_err();
        assert!(matches!(error, KeyError::Exposed { mode: 0o640, .. }), "{error}");
    }

    #[test]
    fn a_file_without_a_key_is_kept_and_refused() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("host.key");
        fs::write(&path, "not a key\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(matches!(HostKey::load_or_make(&path), Err(KeyError::Malformed { .. })));
        assert_eq!(fs::read_to_string(&path).unwrap(), "not a key\n");
    }

    #[test]
    fn programs_that_use_it_first_at_once_get_one_key() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("host.key");
        let keys = std::thread::scope(|scope| {
            let started: Vec<_> = (0..4).map(|_| scope.spawn(|| super::load(&path).map(|key| key.public()))).collect();
            let made = super::make(&path);
            assert!(made.is_ok());
            started.into_iter().filter_map(|thread| thread.join().unwrap().ok()).collect::<Vec<_>>()
        });
        super::make(&path).unwrap();
        let kept = HostKey::load_or_make(&path).unwrap().public();
        assert!(keys.iter().all(|key| *key == kept), "a second maker leaves the first key");
    }

    #[test]
    fn hexadecimal_digits_come_back() {
        assert_eq!(unhex::<3>(&hex(&[0, 171, 255])), Some([0, 171, 255]));
        assert_eq!((unhex::<1>("+1"), unhex::<1>("1"), unhex::<1>("gg")), (None, None, None));
    }
}
