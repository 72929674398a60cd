//! What compares the whole command line with its documents.

mod documents;
mod reference;
