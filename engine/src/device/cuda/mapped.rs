//! The engine's memory as the device sees it.
//!
//! Owns the registrations of one context and the translation of addresses. The memory stays the engine's: it is made
//! before any device is opened and outlives every context. Cold. Bounded by the pieces registered. Never hands out an
//! address outside them.
//!
//! # Why pages, merged
//! The driver registers whole pages. Pieces that share a page would be registered twice, which it refuses; so they are
//! rounded outwards and merged before. Two silos may share a page too. Then the later one registers page by page, and
//! leaves what is registered already to the other.

use super::context::{Context, OpenError};
use super::driver::{Failure, done};
use pinwheel_edge::sync::Span;

/// `CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP`: silos may share a page, and have a context each.
const FLAGS: u32 = 1 | 2;
/// `CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED`: by another silo, or by a context that was lost and could not give it back.
const ALREADY_REGISTERED: i32 = 712;
/// `CUDA_ERROR_INVALID_VALUE`: what the driver says of an address that it does not know.
const INVALID_VALUE: i32 = 1;
const PAGE: u64 = 4096;

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
    /// Addresses of what this context registered, to be given back.
    registered: Vec<u64>,
}

impl Mapped {
    /// Registers `spans` with the bound context `context`.
    ///
    /// # Safety
    /// The memory of `spans` has to stay where it is until [`Mapped::release`] or the end of the context, and what the
    /// device writes of it is read and written through atomics only.
    pub(super) unsafe fn register(context: &Context, spans: &[Span]) -> Result<Mapped, OpenError> {
        let mut mapped = Mapped::default();
        for host in merged(spans) {
            // SAFETY: the caller's promise.
            match unsafe { mapped.register_piece(context, host) } {
                Ok(device) => mapped.pieces.push(Piece { host, device }),
                Err(failure) => {
                    mapped.release(context);
                    return Err(context.refused("registering the engine's memory with it")(failure));
                }
            }
        }
        Ok(mapped)
    }

    /// The device's address of `host`, whole pages, which are registered as far as nobody has done so.
    ///
    /// # Safety
    /// See [`Mapped::register`].
    unsafe fn register_piece(&mut self, context: &Context, host: Span) -> Result<u64, Failure> {
        // SAFETY: the caller's promise.
        if unsafe { self.register_pages(context, host) }? {
            return device_address(context, host.address);
        }
        let mut first = None;
        for address in (host.address..host.address + host.bytes).step_by(PAGE as usize) {
            // SAFETY: the caller's promise.
            unsafe { self.register_pages(context, Span { address, bytes: PAGE }) }?;
            let device = device_address(context, address)?;
            // The device sees the piece as one, or not at all.
            if device != *first.get_or_insert(device) + (address - host.address) {
                return Err(Failure { call: "cuMemHostGetDevicePointer", code: INVALID_VALUE });
            }
        }
        device_address(context, host.address)
    }

    /// Registers these pages; `false` if some of them are registered already.
    ///
    /// # Safety
    /// See [`Mapped::register`].
    unsafe fn register_pages(&mut self, context: &Context, pages: Span) -> Result<bool, Failure> {
        let pointer = std::ptr::with_exposed_provenance_mut(pages.address as usize);
        // SAFETY: whole pages of this process that the caller keeps.
        let code = unsafe { (context.driver.host_register)(pointer, pages.bytes as usize, FLAGS) };
        if code == ALREADY_REGISTERED {
            return Ok(false);
        }
        done("cuMemHostRegister", code)?;
        self.registered.push(pages.address);
        Ok(true)
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

    /// Gives all of it back, as far as the context still can.
    pub(super) fn release(&mut self, context: &Context) {
        self.pieces.clear();
        for address in self.registered.drain(..) {
            // SAFETY: registered by us, once. A lost context refuses; its end gives the memory back then.
            let _ = unsafe { (context.driver.host_unregister)(address as usize as *mut _) };
        }
    }
}

/// The device's address of a registered page.
fn device_address(context: &Context, host: u64) -> Result<u64, Failure> {
    let mut device = 0;
    let pointer = std::ptr::with_exposed_provenance_mut(host as usize);
    // SAFETY: a place for the address; the driver only looks the pointer up.
    done("cuMemHostGetDevicePointer", unsafe { (context.driver.host_address)(&raw mut device, pointer, 0) })?;
    Ok(device)
}

/// `spans` rounded to pages, those that touch made one, ascending.
fn merged(spans: &[Span]) -> Vec<Span> {
    let filled = spans.iter().filter(|span| span.bytes > 0);
    let mut pages: Vec<(u64, u64)> =
        filled.map(|span| (span.address / PAGE * PAGE, (span.address + span.bytes).next_multiple_of(PAGE))).collect();
    pages.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for (from, to) in pages {
        match merged.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => merged.push((from, to)),
        }
    }
    merged.into_iter().map(|(from, to)| Span { address: from, bytes: to - from }).collect()
}

#[cfg(test)]
mod tests {
    use super::{Mapped, PAGE, Piece, merged};
    use pinwheel_edge::sync::Span;

    const fn span(address: u64, bytes: u64) -> Span {
        Span { address, bytes }
    }

    #[test]
    fn pieces_that_share_a_page_are_registered_once() {
        let spans = [span(3 * PAGE + 8, 16), span(PAGE, PAGE + 1), span(3 * PAGE + 64, PAGE), span(9 * PAGE, 0)];
        assert_eq!(merged(&spans), [span(PAGE, 4 * PAGE)]);
        assert_eq!(merged(&[span(PAGE, 1), span(3 * PAGE, 1)]), [span(PAGE, PAGE), span(3 * PAGE, PAGE)]);
    }

    #[test]
    fn only_what_lies_wholly_inside_is_translated() {
        let pieces = vec![Piece { host: span(PAGE, PAGE), device: 1 << 40 }];
        let mapped = Mapped { pieces, registered: Vec::new() };
        assert_eq!(mapped.translate(PAGE + 8, 8), Some((1 << 40) + 8));
        assert_eq!(mapped.translate(PAGE, PAGE), Some(1 << 40));
        for (address, bytes) in [(PAGE - 8, 16), (2 * PAGE - 4, 8), (2 * PAGE, 1), (u64::MAX, 8)] {
            assert_eq!(mapped.translate(address, bytes), None);
        }
    }
}
