//! Numbers of a client's requests: tells when some are missing.
//!
//! Owns the last number of one client. Pure. NVIDIA's client counts its requests, but the protocol
//! lets a client choose their numbers; so a number counts as skipped only by a client that has
//! counted just before.

/// Most numbers that are missing at once; a client that skips more has begun anew.
const SKIPPED_MAX: u32 = 1024;
/// Successive numbers after which a client counts.
const COUNTS: u32 = 2;

/// The numbers of one client.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Numbers {
    /// The client, by its row and the row's generation.
    client: u64,
    last: u32,
    successive: u32,
}

impl Numbers {
    /// Takes the number of a request; returns whether requests before it are missing.
    pub(super) fn skips(&mut self, client: u64, number: u32) -> bool {
        let ahead = number.wrapping_sub(self.last);
        let is_known = self.client == client;
        let skips = is_known && self.successive >= COUNTS && (2..=SKIPPED_MAX).contains(&ahead);
        let successive = if is_known && (ahead == 1 || skips) { self.successive.saturating_add(1) } else { 0 };
        *self = Numbers { client, last: number, successive };
        skips
    }
}

#[cfg(test)]
mod tests {
    use super::Numbers;

    #[test]
    fn a_number_is_skipped_only_where_the_client_counts() {
        let mut numbers = Numbers::default();
        let mut skips = |client, of: &[u32]| of.iter().map(|number| numbers.skips(client, *number)).collect::<Vec<_>>();
        assert_eq!(
            skips(1, &[1, 2, 3, 5, 6, 9, 9, 10, 12]),
            [false, false, false, true, false, true, false, false, false]
        );
        assert_eq!(skips(2, &[7, 9, 100, u32::MAX, 0, 1, 3]), [false, false, false, false, false, false, true]);
        assert_eq!(skips(2, &[4, 5000]), [false; 2], "it has begun anew");
    }
}
