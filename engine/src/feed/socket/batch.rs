//! Batches of datagrams: one system call receives or sends many. A datagram alone takes the call for
//! one, which costs less.
//!
//! Owns the buffers and the structures that point at them; made once, never moved. Runs on the
//! feed's thread. Bounds: [`BATCH`] datagrams of the length it was made for. Never waits: the socket is
//! non-blocking, and every call also sets the flag.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Datagrams of one call.
pub(in crate::feed) const BATCH: usize = 32;

/// Room for a socket address.
const NAME_BYTES: libc::socklen_t = size_of::<libc::sockaddr_storage>() as libc::socklen_t;

/// A socket address as the system writes it.
#[derive(Clone, Copy)]
pub(in crate::feed) struct Address {
    storage: libc::sockaddr_storage,
    bytes: libc::socklen_t,
}

impl Address {
    /// An unspecified address.
    pub(in crate::feed) const fn none() -> Address {
        // SAFETY: all zeros is a value of this plain C structure: family 0, unspecified.
        Address { storage: unsafe { std::mem::zeroed() }, bytes: 0 }
    }

    /// Its bytes, as far as the system filled them in.
    pub(in crate::feed) fn as_bytes(&self) -> &[u8] {
        let bytes = self.bytes.min(NAME_BYTES) as usize;
        // SAFETY: the first `bytes` of a structure that was zeroed before the system wrote into it.
        unsafe { std::slice::from_raw_parts((&raw const self.storage).cast(), bytes) }
    }
}

/// Buffers of a batch.
pub(in crate::feed) struct Batch {
    /// A buffer for each datagram, one after another.
    buffers: Box<[u8]>,
    /// Bytes kept of a datagram: one more than the longest valid one, so that a longer one is
    /// recognised.
    kept_bytes: usize,
    names: Box<[Address; BATCH]>,
    vectors: Box<[libc::iovec; BATCH]>,
    messages: Box<[libc::mmsghdr; BATCH]>,
    /// Headers at the start into which the system has written lengths.
    used: usize,
}

// SAFETY: the pointers lead into boxes of the same value, which move with it; no other value has
// them.
unsafe impl Send for Batch {}

impl Batch {
    /// A batch of datagrams whose longest valid one has `bytes` bytes.
    pub(in crate::feed) fn new(bytes: usize) -> Batch {
        let kept_bytes = bytes + 1;
        // SAFETY: all zeros are values of these plain C structures: null pointers and no lengths.
        let (vectors, messages) = unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        Batch {
            buffers: vec![0; kept_bytes * BATCH].into(),
            kept_bytes,
            names: Box::new([Address::none(); BATCH]),
            vectors: Box::new(vectors),
            messages: Box::new(messages),
            used: BATCH,
        }
    }

    fn point(&mut self, place: usize, bytes: usize, name: libc::socklen_t) {
        let buffer = &mut self.buffers[place * self.kept_bytes..][..self.kept_bytes];
        assert!(bytes <= buffer.len(), "a datagram fits its buffer");
        self.vectors[place] = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: bytes };
        let header = &mut self.messages[place].msg_hdr;
        header.msg_name = (&raw mut self.names[place].storage).cast();
        header.msg_namelen = name;
        header.msg_iov = &raw mut self.vectors[place];
        header.msg_iovlen = 1;
    }

    /// Receives at most `limit` datagrams and at most a batch; 0: none arrived.
    pub(in crate::feed) fn receive(&mut self, socket: BorrowedFd<'_>, limit: usize) -> io::Result<usize> {
        if limit == 1 { self.receive_one(socket) } else { self.receive_many(socket, limit.min(BATCH)) }
    }

    fn receive_one(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        let (buffer, name) = (&mut self.buffers[..self.kept_bytes], &mut self.names[0]);
        name.bytes = NAME_BYTES;
        // SAFETY: buffer and name have the stated lengths and are borrowed for the call.
        let bytes = unsafe {
            let (to, from) = (buffer.as_mut_ptr().cast(), (&raw mut name.storage).cast());
            libc::recvfrom(socket.as_raw_fd(), to, buffer.len(), libc::MSG_DONTWAIT, from, &raw mut name.bytes)
        };
        self.messages[0].msg_len = u32::try_from(bytes).unwrap_or(0);
        // An empty datagram is one too.
        settled(if bytes < 0 { -1 } else { 1 })
    }

    fn receive_many(&mut self, socket: BorrowedFd<'_>, limit: usize) -> io::Result<usize> {
        (0..self.used).for_each(|place| self.point(place, self.kept_bytes, NAME_BYTES));
        // SAFETY: `messages` begin with `limit` headers whose pointers lead to buffers and names of
        // their stated lengths, all of which live as long as `self`, which is borrowed for the call.
        let taken = unsafe {
            let (messages, none) = (self.messages.as_mut_ptr(), std::ptr::null_mut());
            libc::recvmmsg(socket.as_raw_fd(), messages, limit as u32, libc::MSG_DONTWAIT as _, none)
        };
        // A call that fails may have written into one header.
        self.used = 1;
        let taken = settled(taken)?;
        for place in 0..taken {
            self.names[place].bytes = self.messages[place].msg_hdr.msg_namelen;
        }
        self.used = taken.max(1);
        Ok(taken)
    }

    /// The datagram at `place` of the last batch, and its sender.
    pub(in crate::feed) fn datagram(&self, place: usize) -> (&[u8], &Address) {
        let bytes = (self.messages[place].msg_len as usize).min(self.kept_bytes);
        (&self.buffers[place * self.kept_bytes..][..bytes], &self.names[place])
    }

    /// Buffer of the datagram that [`Batch::send`] will send at `place`.
    pub(in crate::feed) fn room(&mut self, place: usize) -> &mut [u8] {
        &mut self.buffers[place * self.kept_bytes..][..self.kept_bytes - 1]
    }

    /// Addresses the first `bytes` of the buffer at `place` to `to`.
    pub(in crate::feed) fn address(&mut self, place: usize, bytes: usize, to: &Address) {
        self.names[place] = *to;
        self.point(place, bytes, to.bytes);
    }

    /// Sends the datagrams at `from..to`; returns how many were sent.
    ///
    /// # Errors
    /// Why the first of them was not sent.
    pub(in crate::feed) fn send(&mut self, socket: BorrowedFd<'_>, from: usize, to: usize) -> io::Result<usize> {
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        if to - from == 1 {
            let (vector, name) = (&self.vectors[from], &self.names[from]);
            // SAFETY: `address` has set the vector to the buffer and its length; the system only
            // reads buffer and name, which are borrowed for the call.
            let sent = unsafe {
                let to = (&raw const name.storage).cast();
                libc::sendto(socket.as_raw_fd(), vector.iov_base, vector.iov_len, flags, to, name.bytes)
            };
            return settled(if sent < 0 { -1 } else { 1 });
        }
        let messages = &mut self.messages[from..to];
        // SAFETY: as in `receive_many`, for the headers that `address` has filled in; the system only
        // reads what they lead to.
        let sent =
            unsafe { libc::sendmmsg(socket.as_raw_fd(), messages.as_mut_ptr(), messages.len() as u32, flags as _) };
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

/// Datagrams that the socket has dropped for lack of room since it was opened, if the system says so.
pub(in crate::feed) fn dropped(socket: BorrowedFd<'_>) -> Option<u32> {
    let counts: [u32; libc::SK_MEMINFO_DROPS as usize + 1] = option(socket, libc::SO_MEMINFO)?;
    Some(counts[libc::SK_MEMINFO_DROPS as usize])
}

/// Requests buffers of `buffer_bytes`; returns the actual size of the one for arrivals.
pub(in crate::feed) fn prepare(socket: BorrowedFd<'_>, buffer_bytes: i32) -> u64 {
    set(socket, libc::SO_RCVBUF, buffer_bytes);
    set(socket, libc::SO_SNDBUF, buffer_bytes);
    let [found] = option(socket, libc::SO_RCVBUF).unwrap_or([0]);
    u64::from(found)
}

/// An option of `N` words; `None` if the system gives fewer.
fn option<const N: usize>(socket: BorrowedFd<'_>, option: libc::c_int) -> Option<[u32; N]> {
    let (mut words, mut bytes) = ([0u32; N], size_of::<[u32; N]>() as libc::socklen_t);
    // SAFETY: value and length are those of `words` and live through the call.
    let read = unsafe {
        let (level, value) = (libc::SOL_SOCKET, words.as_mut_ptr().cast());
        libc::getsockopt(socket.as_raw_fd(), level, option, value, &raw mut bytes)
    };
    (read == 0 && bytes as usize == size_of::<[u32; N]>()).then_some(words)
}

/// Optional: a socket works without it, and the board shows the actual value.
fn set(socket: BorrowedFd<'_>, option: libc::c_int, value: i32) {
    let bytes = size_of::<i32>() as libc::socklen_t;
    // SAFETY: value and length are one i32's and live through the call.
    let _ = unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, (&raw const value).cast(), bytes) };
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{BATCH, Batch, dropped, prepare};
    use std::net::UdpSocket;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixDatagram;

    #[test]
    fn datagrams_received_singly_and_in_batches_come_whole_in_order_with_their_sender() {
        let [here, there] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        prepare(here.as_fd(), 1 << 20);
        let port = there.local_addr().unwrap().port().to_be_bytes();
        let to = here.local_addr().unwrap();
        // Long ones first: a later, shorter one must not keep their length. Empty ones count.
        let sent: Vec<Vec<u8>> = (0..100u8).map(|n| vec![n; usize::from(100 - n) % 60]).collect();
        sent.iter().for_each(|bytes| assert_eq!(there.send_to(bytes, to).unwrap(), bytes.len()));
        let (mut batch, mut found) = (Batch::new(1_000), Vec::new());
        for limit in [1, BATCH, 1, 3, 1, 1, BATCH, BATCH, 1, BATCH] {
            for place in 0..batch.receive(here.as_fd(), limit).unwrap() {
                let (bytes, from) = batch.datagram(place);
                found.push(bytes.to_vec());
                assert_eq!((from.as_bytes().len(), &from.as_bytes()[2..4]), (16, &port[..]));
            }
        }
        assert_eq!(found, sent);
        assert_eq!((batch.receive(here.as_fd(), 1).unwrap(), batch.receive(here.as_fd(), BATCH).unwrap()), (0, 0));
        assert_eq!(dropped(here.as_fd()), Some(0));
    }

    /// What the system wrote about a sender with a short name must not cut the next one's.
    #[test]
    fn each_sender_on_a_unix_socket_has_its_whole_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let here = UnixDatagram::bind(path("here")).unwrap();
        let mut batch = Batch::new(1_000);
        for limit in [1, BATCH, BATCH, 1] {
            for name in ["a", "a-longer-name"] {
                let there = UnixDatagram::bind(path(name)).unwrap();
                there.send_to(&[1], path("here")).unwrap();
                assert_eq!(batch.receive(here.as_fd(), limit).unwrap(), 1);
                let found = batch.datagram(0).1.as_bytes()[2..].strip_suffix(&[0]).unwrap();
                assert_eq!(found, path(name).as_os_str().as_encoded_bytes());
                std::fs::remove_file(path(name)).unwrap();
            }
        }
    }

    #[test]
    fn datagrams_without_room_are_counted() {
        let [here, there] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        assert!(prepare(here.as_fd(), 1) > 0);
        (0..1_000).for_each(|_| assert_eq!(there.send_to(&[7; 900], here.local_addr().unwrap()).unwrap(), 900));
        let (mut batch, mut found) = (Batch::new(1_000), 0);
        while let Some(taken) = Some(batch.receive(here.as_fd(), BATCH).unwrap()).filter(|taken| *taken > 0) {
            found += taken as u32;
        }
        assert_eq!(dropped(here.as_fd()), Some(1_000 - found));
    }
}
