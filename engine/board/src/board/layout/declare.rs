//! The declaration of blocks: one text generates the block, its view and the view's reader.
//!
//! Owns `blocks!`. A block is declared as
//!
//! ```text
//! /// What it holds.
//! ExampleBlock => ExampleView(block, now, stream: u32) {
//!     /// Shots taken.
//!     taken: AtomicU64 => taken,
//!     /// Shots launched.
//!     launched: AtomicU64 [counter launched],
//!     /// Whether shots are taken now.
//!     is_taking: AtomicU64 => is_taking: bool = flag,
//!     /// Tick of the last of them.
//!     taken_last: AtomicU64,
//! } + {
//!     /// Time since the last shot was taken; `None`: none was.
//!     silent_ns: Option<u64> = now.age_if_any(&block.taken_last),
//! }
//! ```
//!
//! - `word: Type` is a field of the block.
//! - `=> name` copies it into the view's field `name`, which has the same documentation. This name
//!   is the key in JSON.
//! - `=> name: Type = function` does so for a word that is no plain count: the function makes the
//!   view's value of it.
//! - `[counter name]` makes it a field of the total that the first line of the declaration names
//!   (`total Counters`), and `[adds name]` adds it to a field of the total that another block
//!   declares.
//! - What follows `+` are fields of the view that are computed: name, type, value. An expression
//!   may use the names in the parentheses: the block, the [`Now`](crate::board::reading::Now) of
//!   the reading, and further arguments of the generated `ExampleView::read`.
//! - A block without a view, or a word without an arrow, is read by hand.

use crate::board::get;
use crate::board::histogram::{Histogram, HistogramBlock};
use crate::board::text::Text;
use std::sync::atomic::AtomicU64;

/// A type of the board that a view shows unchanged.
pub trait Plain {
    /// Its type in the view.
    type View;
    /// A copy.
    fn view(&self) -> Self::View;
}

impl Plain for AtomicU64 {
    type View = u64;
    fn view(&self) -> u64 {
        get(self)
    }
}

impl<const N: usize> Plain for [AtomicU64; N] {
    type View = [u64; N];
    fn view(&self) -> [u64; N] {
        self.each_ref().map(get)
    }
}

impl<const WORDS: usize> Plain for Text<WORDS> {
    type View = String;
    fn view(&self) -> String {
        self.read()
    }
}

impl Plain for HistogramBlock {
    type View = Histogram;
    fn view(&self) -> Histogram {
        self.snapshot()
    }
}

macro_rules! blocks {
    ($(#[doc = $doc:literal])* total $total:ident { $($by_hand:tt)* } $($blocks:tt)*) => {
        declare! { [ [ $($doc)* ] $total { $($by_hand)* } ] $($blocks)* }
    };
    ($($blocks:tt)*) => { declare! { [] $($blocks)* } };
}

macro_rules! declare {
    ($total:tt $(
        $(#[doc = $doc:literal])*
        $name:ident $( => $(#[$more:meta])* $view:ident ($block:ident, $now:ident $(, $arg:ident: $arg_ty:ty)*) )? {
            $(
                $(#[doc = $field_doc:literal])*
                $field:ident: $ty:ty $( => $shown:ident $( : $shown_ty:ty = $by:path )? )?
                $( [counter $counter:ident] )? $( [adds $adds:ident] )?,
            )*
        }
        $( + { $($by_hand:tt)* } )?
    )*) => {
        $(
            $(#[doc = $doc])*
            #[repr(C, align(128))]
            #[derive(FromBytes)]
            pub struct $name { $( $(#[doc = $field_doc])* pub $field: $ty, )* }
            view! {
                [ $( $(#[$more])* $view ($block, $now $(, $arg: $arg_ty)*) )? ]
                [ $($doc)* ] $name
                { $( { [ $($field_doc)* ] $field: $ty $( => $shown $( : $shown_ty = $by )? )? } )* }
                { $( $($by_hand)* )? }
            }
        )*
        total! { $total $( $name { $( { [ $($field_doc)* ] $field $( counter $counter )? $( adds $adds )? } )* } )* }
        /// Every block's fields: (block, field, offset).
        pub(super) const FIELDS: &[(&str, &str, usize)] = &[
            $( $( (stringify!($name), stringify!($field), offset_of!($name, $field)), )* )*
        ];
    };
}

/// The view of one block, if it has one, and its reader.
macro_rules! view {
    ([] $($rest:tt)*) => {};
    (
        [ $(#[$more:meta])* $view:ident ($block:ident, $now:ident $(, $arg:ident: $arg_ty:ty)*) ]
        [ $($doc:literal)* ] $name:ident
        { $( { $docs:tt $field:ident: $ty:ty $( => $shown:ident $( : $shown_ty:ty = $by:path )? )? } )* }
        { $( $(#[doc = $hand_doc:literal])* $hand:ident: $hand_ty:ty = $value:expr, )* }
    ) => {
        $(#[doc = $doc])*
        $(#[$more])*
        #[derive(Clone, Debug, PartialEq, Serialize)]
        pub struct $view {
            $( $( #[doc = lines!($docs)] pub $shown: shown_type!($ty $( , $shown_ty )?), )? )*
            $( $(#[doc = $hand_doc])* pub $hand: $hand_ty, )*
        }

        impl $view {
            pub(in crate::board) fn read($block: &$name, $now: &Now<'_> $(, $arg: $arg_ty)*) -> $view {
                let _ = $now;
                $view { $( $( $shown: shown!(&$block.$field $( , $by )?), )? )* $( $hand: $value, )* }
            }
        }
    };
}

macro_rules! shown_type {
    ($ty:ty) => {
        <$ty as Plain>::View
    };
    ($ty:ty, $shown_ty:ty) => {
        $shown_ty
    };
}

macro_rules! shown {
    ($word:expr) => {
        Plain::view($word)
    };
    ($word:expr, $by:path) => {
        $by($word)
    };
}

/// The sum over a group of blocks, if it has one.
macro_rules! total {
    ([] $($rest:tt)*) => {};
    (
        [ [ $($doc:literal)* ] $total:ident { $( $(#[doc = $hand_doc:literal])* $hand:ident, )* } ]
        $( $name:ident { $( { $docs:tt $field:ident $( counter $counter:ident )? $( adds $adds:ident )? } )* } )*
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
        pub struct $total {
            $( $( $( #[doc = lines!($docs)] pub $counter: u64, )? )* )*
            $( $(#[doc = $hand_doc])* pub $hand: u64, )*
        }

        impl $total {
            /// Adds those of another silo.
            pub fn add(&mut self, other: &$total) {
                $( $( $( self.$counter = self.$counter.saturating_add(other.$counter); )? )* )*
                $( self.$hand = self.$hand.saturating_add(other.$hand); )*
            }
        }

        $(
            impl $name {
                pub(in crate::board) fn count(&self, total: &mut $total) {
                    $(
                        $( total.$counter = total.$counter.saturating_add(self.$field.view()); )?
                        $( total.$adds = total.$adds.saturating_add(self.$field.view()); )?
                    )*
                }
            }
        )*
    };
}

/// Lines of documentation as one text.
macro_rules! lines {
    ([ $($line:literal)* ]) => { concat!($($line, "\n"),*) };
}
