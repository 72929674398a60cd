//! Which of a forest's links an explanation takes.
//!
//! The links that made a cluster are a tree of its balls, with the boundary as one more vertex where it
//! was reached. A ball with one link takes it if the number of its defects that are left unexplained is
//! odd, and hands that on to the other end; then the next such ball does. Time in proportion to the
//! defects, no memory.

use super::growth::{Defect, Link};

/// Hands the numbers of those `links` that explain `defects` to `take`, each once. Uses up the links of
/// `defects`.
#[inline]
pub(super) fn peel(defects: &mut [Defect], links: &[Link], mut take: impl FnMut(u32)) {
    for first in 0..defects.len() {
        let mut at = first as u32;
        while let Some(defect) = defects.get_mut(at as usize).filter(|defect| defect.links == 1) {
            defect.links = 0;
            let Defect { which, is_odd, .. } = *defect;
            if is_odd {
                take(which);
            }
            let [a, b] = links[which as usize].sources;
            at ^= a ^ b;
            // Behind a link to the boundary there is nothing to explain.
            if let Some(other) = defects.get_mut(at as usize) {
                other.links -= 1;
                other.which ^= which;
                other.is_odd ^= is_odd;
            }
        }
    }
}
