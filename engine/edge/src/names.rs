//! The names of an enumeration's variants, from one table.

/// Gives an enumeration without fields `ALL` and `name`. The table has its variants in the order of their declaration.
#[macro_export]
macro_rules! names {
    ($Enum:ident: $($Variant:ident $name:literal),+ $(,)?) => {
        impl $Enum {
            /// All, in the order of their declaration.
            pub const ALL: [$Enum; [$($name),+].len()] = [$($Enum::$Variant),+];

            /// Name on screen, in files and in JSON.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $($Enum::$Variant => $name,)+
                }
            }
        }
    };
}
