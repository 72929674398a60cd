//! Checks of packed shots, for decoders and engines.
//!
//! Pure. Reads one byte of each shot.

/// The bytes of one shot, if `shots` are `count` shots of `bits` bits each.
///
/// # Errors
/// One sentence: another number of bytes, or the first shot with a bit behind its last.
pub(crate) fn width(shots: &[u8], count: usize, bits: u32) -> Result<usize, String> {
    let (width, used) = (bits.div_ceil(8) as usize, bits % 8);
    if Some(shots.len()) != count.checked_mul(width) {
        return Err(format!("found {} bytes, expected {count} shots of {width}", shots.len()));
    }
    let is_over = |shot: &[u8]| used > 0 && shot.last().is_some_and(|last| last >> used > 0);
    match shots.chunks_exact(width.max(1)).position(is_over) {
        Some(shot) => Err(format!(
            "shot {shot}: found a bit set behind those of the {bits} detectors, expected zeros; check that model and \
             shots belong together"
        )),
        None => Ok(width),
    }
}
