//! Sets as bits of 64-bit words.

/// Whether a bit is set.
#[inline]
pub(crate) fn is_set(bits: &[u64], index: u32) -> bool {
    bits[index as usize / 64] >> (index % 64) & 1 == 1
}

#[inline]
pub(crate) fn flip(bits: &mut [u64], index: u32) {
    bits[index as usize / 64] ^= 1 << (index % 64);
}

/// XORs words; what one of the two has beyond the other is left.
#[inline]
pub(crate) fn xor(flipped: &mut [u64], by: &[u64]) {
    flipped.iter_mut().zip(by).for_each(|(word, by)| *word ^= by);
}

/// The bits that are set, ascending.
pub(crate) fn ones(bits: &[u64]) -> impl Iterator<Item = u32> {
    (0..).zip(bits).flat_map(|(word, &bits)| ones_of(word, bits))
}

/// Those of the word with index `word`.
#[inline]
pub(crate) fn ones_of(word: u32, mut bits: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let at = (bits != 0).then(|| word * 64 + bits.trailing_zeros())?;
        bits &= bits - 1;
        Some(at)
    })
}
