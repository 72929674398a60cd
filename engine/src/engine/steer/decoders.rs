//! Commands on decoders and error models.
//!
//! Part of the command state, under its lock. Prepares nothing: the requester has done that, without
//! the lock.

use super::super::header;
use super::{ApplyError, Steering};
use crate::decode::changes::{Change, DecoderChanges};
use crate::profile::{Decoder, Profile, StreamDecoder, Window};
use std::sync::Arc;

impl Steering {
    /// The profile in force with the decoders of `next`, and changes of the decoders in force; `None`
    /// if they are the same, or decode windows, which keep theirs.
    pub(in crate::engine) fn other_decoders(&self, next: &Profile) -> Option<(Profile, DecoderChanges)> {
        let (now, wanted) = (&*self.profile, (&next.decoder, &next.streams));
        let applies = now.window == Window::None && wanted != (&now.decoder, &now.streams);
        applies.then(|| {
            let profile = Profile { decoder: next.decoder.clone(), streams: next.streams.clone(), ..now.clone() };
            (profile, self.handles.decoders.clone())
        })
    }

    /// The profile in force with `decoder` for `stream`, or for all streams, and changes of the
    /// decoders in force.
    pub(in crate::engine) fn with_decoder(&self, decoder: Decoder, stream: Option<u32>) -> (Profile, DecoderChanges) {
        let mut profile = (*self.profile).clone();
        match stream {
            None => {
                profile.streams.clear();
                profile.decoder = decoder;
            }
            Some(stream) => {
                profile.streams.retain(|named| named.stream != stream);
                profile.streams.push(StreamDecoder { stream, decoder });
                profile.streams.sort_by_key(|named| named.stream);
            }
        }
        (profile, self.handles.decoders.clone())
    }

    /// The profile in force, and changes of the decoders in force.
    pub(in crate::engine) fn decoders(&self) -> (Profile, DecoderChanges) {
        ((*self.profile).clone(), self.handles.decoders.clone())
    }

    /// Epoch of the decoders and models in force.
    pub(in crate::engine) fn decoder_epoch(&self) -> u64 {
        self.handles.decoders.epoch()
    }

    /// Decodes by `change`, which was made for `profile`, until a profile with other decoders.
    /// Returns its epoch.
    pub(in crate::engine) fn set_decoders(&mut self, profile: &Profile, change: Change) -> Result<u64, ApplyError> {
        self.open()?;
        let epoch = self.handles.decoders.begin(change)?;
        let mut now = (*self.profile).clone();
        now.decoder.clone_from(&profile.decoder);
        now.streams.clone_from(&profile.streams);
        self.profile = Arc::new(now);
        header::write_decoders(&self.handles.board, &self.handles.decoders);
        Ok(epoch)
    }
}
