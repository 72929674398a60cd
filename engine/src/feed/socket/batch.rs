//! Batches of datagrams: one system call receives or sends many.
//!
//! Owns the buffers and the structures that point at them; made once, never moved. Runs on the
//! feed's thread. Bounds: [`BATCH`] datagrams of [`DATAGRAM_BYTES_MAX`]. Never waits: the socket is
//! non-blocking, and every call also sets the flag.

use super::super::packet::DATAGRAM_BYTES_MAX;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Datagrams of one call.
pub(super) const BATCH: usize = 32;
/// Bytes kept of a datagram: one more than the longest valid one, so that a longer one is
/// recognised.
const KEPT_BYTES: usize = DATAGRAM_BYTES_MAX + 1;
/// Room for the control message that counts drops.
const CONTROL_WORDS: usize = 8;

/// A socket address as the system writes it.
#[derive(Clone, Copy)]
pub(super) struct Address {
    storage: libc::sockaddr_storage,
    bytes: libc::socklen_t,
}

impl Address {
    /// An unspecified address.
    pub(super) const fn none() -> Address {
        // SAFETY: all zeros is a value of this plain C structure: family 0, unspecified.
        Address { storage: unsafe { std::mem::zeroed() }, bytes: 0 }
    }

    /// Its bytes, as far as the system filled them in.
    pub(super) fn as_bytes(&self) -> &[u8] {
        let bytes = (self.bytes as usize).min(size_of::<libc::sockaddr_storage>());
        // SAFETY: the first `bytes` of a structure that was zeroed before the system wrote into it.
        unsafe { std::slice::from_raw_parts((&raw const self.storage).cast(), bytes) }
    }
}

/// Buffers of a batch.
pub(super) struct Batch {
    buffers: Box<[[u8; KEPT_BYTES]; BATCH]>,
    names: Box<[Address; BATCH]>,
    control: Box<[[u64; CONTROL_WORDS]; BATCH]>,
    vectors: Box<[libc::iovec; BATCH]>,
    messages: Box<[libc::mmsghdr; BATCH]>,
}

// SAFETY: the pointers lead into boxes of the same value, which move with it; no other value has
// them.
unsafe impl Send for Batch {}

impl Batch {
    pub(super) fn new() -> Batch {
        let buffers: Box<[[u8; KEPT_BYTES]; BATCH]> =
            vec![[0; KEPT_BYTES]; BATCH].into_boxed_slice().try_into().unwrap_or_else(|_| unreachable!());
        // SAFETY: all zeros are values of these plain C structures: null pointers and no lengths.
        let (vectors, messages) = unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        Batch {
            buffers,
            names: Box::new([Address::none(); BATCH]),
            control: Box::new([[0; CONTROL_WORDS]; BATCH]),
            vectors: Box::new(vectors),
            messages: Box::new(messages),
        }
    }

    fn point(&mut self, place: usize, bytes: usize, control: usize) {
        self.vectors[place] = libc::iovec { iov_base: self.buffers[place].as_mut_ptr().cast(), iov_len: bytes };
        let header = &mut self.messages[place].msg_hdr;
        header.msg_name = (&raw mut self.names[place].storage).cast();
        header.msg_iov = &raw mut self.vectors[place];
        header.msg_iovlen = 1;
        header.msg_control = if control == 0 { std::ptr::null_mut() } else { self.control[place].as_mut_ptr().cast() };
        header.msg_controllen = control as _;
        header.msg_flags = 0;
    }

    /// Receives at most `limit` datagrams and at most a batch; 0: none arrived.
    pub(super) fn receive(&mut self, socket: BorrowedFd<'_>, limit: usize) -> io::Result<usize> {
        let limit = limit.min(BATCH);
        for place in 0..limit {
            self.point(place, KEPT_BYTES, CONTROL_WORDS * 8);
            self.messages[place].msg_hdr.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        }
        // SAFETY: `messages` begin with `limit` headers whose pointers lead to buffers, names and
        // control words of their stated lengths, all of which live as long as `self`, which is
        // borrowed for the call.
        let taken = unsafe {
            let (messages, none) = (self.messages.as_mut_ptr(), std::ptr::null_mut());
            libc::recvmmsg(socket.as_raw_fd(), messages, limit as u32, libc::MSG_DONTWAIT as _, none)
        };
        let taken = settled(taken)?;
        for place in 0..taken {
            self.names[place].bytes = self.messages[place].msg_hdr.msg_namelen;
        }
        Ok(taken)
    }

    /// The datagram at `place` of the last batch, and its sender.
    pub(super) fn datagram(&self, place: usize) -> (&[u8], &Address) {
        let bytes = (self.messages[place].msg_len as usize).min(KEPT_BYTES);
        (&self.buffers[place][..bytes], &self.names[place])
    }

    /// Datagrams that the socket has dropped for lack of room since it was opened, according to the
    /// datagram at `place`.
    pub(super) fn dropped(&self, place: usize) -> Option<u32> {
        let header = &self.messages[place].msg_hdr;
        // SAFETY: the header's control pointer and length are those of `control[place]`, filled in by the system.
        let first = unsafe { libc::CMSG_FIRSTHDR(header).as_ref() }?;
        let is_count = first.cmsg_level == libc::SOL_SOCKET && first.cmsg_type == libc::SO_RXQ_OVFL;
        // SAFETY: a control message of this kind carries one 32-bit word, which may be unaligned.
        is_count.then(|| unsafe { libc::CMSG_DATA(first).cast::<u32>().read_unaligned() })
    }

    /// Buffer of the datagram that [`Batch::send`] will send at `place`.
    pub(super) fn room(&mut self, place: usize) -> &mut [u8] {
        &mut self.buffers[place][..DATAGRAM_BYTES_MAX]
    }

    /// Addresses the first `bytes` of the buffer at `place` to `to`.
    pub(super) fn address(&mut self, place: usize, bytes: usize, to: &Address) {
        self.names[place] = *to;
        self.point(place, bytes, 0);
        self.messages[place].msg_hdr.msg_namelen = to.bytes;
    }

    /// Sends the datagrams at `from..to`; returns how many were sent.
    ///
    /// # Errors
    /// Why the first of them was not sent.
    pub(super) fn send(&mut self, socket: BorrowedFd<'_>, from: usize, to: usize) -> io::Result<usize> {
        let messages = &mut self.messages[from..to];
        // SAFETY: as in `receive`, for the headers that `address` has filled in; the system only
        // reads what they lead to.
        let sent = unsafe {
            let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
            libc::sendmmsg(socket.as_raw_fd(), messages.as_mut_ptr(), messages.len() as u32, flags as _)
        };
        settled(sent)
    }
}

/// An empty socket or an interrupted call counts as 0; other errors are returned.
fn settled(count: libc::c_int) -> io::Result<usize> {
    if let Ok(count) = usize::try_from(count) {
        return Ok(count);
    }
    let error = io::Error::last_os_error();
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
        _ => Err(error),
    }
}

/// Makes the socket count its drops, and requests a buffer of `buffer_bytes`; returns its actual
/// size.
pub(super) fn prepare(socket: BorrowedFd<'_>, buffer_bytes: i32) -> u64 {
    set(socket, libc::SO_RXQ_OVFL, 1);
    set(socket, libc::SO_RCVBUF, buffer_bytes);
    set(socket, libc::SO_SNDBUF, buffer_bytes);
    let (mut found, mut bytes) = (0i32, size_of::<i32>() as libc::socklen_t);
    // SAFETY: value and length are one i32's and live through the call.
    let read = unsafe {
        let (level, option) = (libc::SOL_SOCKET, libc::SO_RCVBUF);
        libc::getsockopt(socket.as_raw_fd(), level, option, (&raw mut found).cast(), &raw mut bytes)
    };
    if read == 0 { u64::try_from(found).unwrap_or(0) } else { 0 }
}

/// Optional: a socket works without it, and the board shows the actual value.
fn set(socket: BorrowedFd<'_>, option: libc::c_int, value: i32) {
    let bytes = size_of::<i32>() as libc::socklen_t;
    // SAFETY: value and length are one i32's and live through the call.
    let _ = unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, (&raw const value).cast(), bytes) };
}
