//! The engine's memory as mapped by the device.
//!
//! Owns the registrations of one context and the translation of addresses. The memory stays the
//! engine's: it is allocated before any device is opened and outlives every context. Cold. Bounded
//! by the registered pieces. Returns only addresses inside them.
//!
//! # Why whole pages
//! The driver registers whole pages. Each bank of the engine lies on pages of its own
//! (`edge::aligned`), so that unregistering them here affects no other silo.

use super::context::{Context, OpenError};
use super::driver::{Failure, done};
use pinwheel_edge::aligned::PAGE_BYTES;
use pinwheel_edge::sync::Span;

/// `CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP`: a registration left by a lost
/// context also serves the next context.
const FLAGS: u32 = 1 | 2;
/// `CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED`: left by this silo's previous context, which was
/// lost before it could unregister.
const ALREADY_REGISTERED: i32 = 712;
const PAGE: u64 = PAGE_BYTES as u64;

/// A registered piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    host: Span,
    device: u64,
}

/// All registered pieces of one context.
#[derive(Debug, Default)]
pub(super) struct Mapped {
    pieces: Vec<Piece>,
}

impl Mapped {
    /// Registers `spans` with the bound context `context`.
    ///
    /// # Safety
    /// The memory of `spans` must stay in place until [`Mapped::release`] or the end of the
    /// context, and the parts that the device writes are read and written through atomics only.
    /// Each span has its pages to itself.
    pub(super) unsafe fn register(context: &Context, spans: &[Span]) -> Result<Mapped, OpenError> {
        let mut mapped = Mapped::default();
        for host in spans.iter().map(whole_pages) {
            // SAFETY: the caller's promise.
            match unsafe { register_piece(context, host) } {
                Ok(device) => mapped.pieces.push(Piece { host, device }),
                Err(failure) => {
                    mapped.release(context);
                    return Err(context.refused("registering the engine's memory with it")(failure));
                }
            }
        }
        Ok(mapped)
    }

    /// The device's address for `bytes` bytes at the host's `address`.
    pub(super) fn device(&self, context: &Context, address: u64, bytes: u64) -> Result<u64, OpenError> {
        let index = context.facts.index;
        self.translate(address, bytes).ok_or(OpenError::Untranslated { index, address, bytes })
    }

    fn translate(&self, address: u64, bytes: u64) -> Option<u64> {
        let end = address.checked_add(bytes)?;
        let inside = |piece: &&Piece| piece.host.address <= address && end <= piece.host.address + piece.host.bytes;
        self.pieces.iter().find(inside).map(|piece| piece.device + (address - piece.host.address))
    }

    /// Bytes registered.
    pub(super) fn bytes(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.host.bytes).sum()
    }

    /// Unregisters all pieces, as far as the context still can.
    pub(super) fn release(&mut self, context: &Context) {
        for piece in self.pieces.drain(..) {
            // SAFETY: registered here, once. A lost context refuses; its end then unregisters the
            // memory.
            let _ = unsafe { (context.driver.host_unregister)(piece.host.address as usize as *mut _) };
        }
    }
}

/// The device's address of `host`, which is whole pages.
///
/// # Safety
/// See [`Mapped::register`].
unsafe fn register_piece(context: &Context, host: Span) -> Result<u64, Failure> {
    let pointer = std::ptr::with_exposed_provenance_mut(host.address as usize);
    // SAFETY: whole pages of this process that the caller keeps.
    let code = unsafe { (context.driver.host_register)(pointer, host.bytes as usize, FLAGS) };
    if code != ALREADY_REGISTERED {
        done("cuMemHostRegister", code)?;
    }
    let mut device = 0;
    // SAFETY: a place for the address; the pointer is the registered one.
    done("cuMemHostGetDevicePointer", unsafe { (context.driver.host_address)(&raw mut device, pointer, 0) })?;
    Ok(device)
}

/// The whole pages that a bank occupies alone.
fn whole_pages(bank: &Span) -> Span {
    assert!(bank.address.is_multiple_of(PAGE), "a bank for a device must begin a page");
    Span { address: bank.address, bytes: bank.bytes.next_multiple_of(PAGE) }
}

#[cfg(test)]
mod tests {
    use super::{Mapped, PAGE, Piece, whole_pages};
    use pinwheel_edge::sync::Span;

    const fn span(address: u64, bytes: u64) -> Span {
        Span { address, bytes }
    }

    #[test]
    fn a_bank_is_registered_to_the_end_of_its_last_page() {
        assert_eq!(whole_pages(&span(3 * PAGE, 8)), span(3 * PAGE, PAGE));
        assert_eq!(whole_pages(&span(PAGE, 2 * PAGE)), span(PAGE, 2 * PAGE));
    }

    #[test]
    fn only_what_lies_wholly_inside_is_translated() {
        let pieces = vec![Piece { host: span(PAGE, PAGE), device: 1 << 40 }];
        let mapped = Mapped { pieces };
        assert_eq!(mapped.translate(PAGE + 8, 8), Some((1 << 40) + 8));
        assert_eq!(mapped.translate(PAGE, PAGE), Some(1 << 40));
        for (address, bytes) in [(PAGE - 8, 16), (2 * PAGE - 4, 8), (2 * PAGE, 1), (u64::MAX, 8)] {
            assert_eq!(mapped.translate(address, bytes), None);
        }
    }
}
