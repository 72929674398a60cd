//! An enumeration with its words: each variant with a name that people type and what a heading says of it.

/// Declares the enumeration, the array `ALL` of its variants in this order, `name` and `heading`.
macro_rules! named {
    ($(#[$of:meta])* pub enum $Named:ident { $($(#[$one:meta])* $Variant:ident = $name:literal, $heading:literal;)* }) => {
        $(#[$of])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $Named {
            $($(#[$one])* $Variant,)*
        }

        impl $Named {
            /// All, in the order in which the console shows them.
            pub const ALL: [$Named; [$($Named::$Variant),*].len()] = [$($Named::$Variant),*];

            /// As files of keys, options and the palette spell it.
            pub const fn name(self) -> &'static str {
                match self {
                    $($Named::$Variant => $name,)*
                }
            }

            /// As titles and help say it.
            pub const fn heading(self) -> &'static str {
                match self {
                    $($Named::$Variant => $heading,)*
                }
            }
        }
    };
}

pub(crate) use named;
