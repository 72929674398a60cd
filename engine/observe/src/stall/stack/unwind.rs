//! Turns copied registers and stack words into functions and source lines.
//!
//! Owns the tables of one process's programs and libraries, read from their files when first
//! needed. On the symbolizer's thread, or in a command that examines another process. Bounds:
//! [`FILE_MAX`] a file, [`FRAMES_MAX`] frames. A function without line information is named from
//! the symbol table; a frame in neither is shown as an address.

use super::{FRAMES_MAX, NamedStack, Sample};
use framehop::{CacheNative, ExplicitModuleSectionInfo, MayAllocateDuringUnwind, Module, Unwinder, UnwinderNative};
use gimli::{EndianArcSlice, LittleEndian};
use object::{CompressionFormat, Object, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Larger files are not read.
const FILE_MAX: u64 = 2 << 30;
/// Zlib makes at most so many bytes of one: a section that claims more is damaged.
const ZLIB_RATIO_MAX: u64 = 1_032;
/// Path parts of code that does not belong to this program.
const FOREIGN: [&str; 5] = ["/rustc/", "/rustlib/", "/.cargo/registry/", "/std/src/", "/core/src/"];

type Bytes = Arc<[u8]>;
type Lines = addr2line::Context<EndianArcSlice<LittleEndian>>;

/// One mapping of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mapping {
    start: u64,
    end: u64,
    offset: u64,
    runs: bool,
    path: Option<PathBuf>,
}

/// The mappings of a process.
#[derive(Clone, Debug, Default)]
pub struct Maps(Vec<Mapping>);

impl Maps {
    /// The mappings of this process.
    ///
    /// # Errors
    /// If `/proc` cannot be read.
    pub fn own() -> std::io::Result<Maps> {
        Ok(Maps::parse(&crate::files::read_lossy("/proc/self/maps")?))
    }

    /// The mappings of process `pid`.
    ///
    /// # Errors
    /// If `/proc` cannot be read by this user.
    pub fn of(pid: u32) -> std::io::Result<Maps> {
        Ok(Maps::parse(&crate::files::read_lossy(format!("/proc/{pid}/maps"))?))
    }

    fn parse(text: &str) -> Maps {
        let mapping = |line: &str| {
            let mut words = line.split_whitespace();
            let (start, end) = words.next()?.split_once('-')?;
            let (rights, offset) = (words.next()?, words.next()?);
            let path = words.nth(2).filter(|path| path.starts_with('/')).map(PathBuf::from);
            let hex = |word| u64::from_str_radix(word, 16).ok();
            Some(Mapping { start: hex(start)?, end: hex(end)?, offset: hex(offset)?, runs: rights.contains('x'), path })
        };
        Maps(text.lines().filter_map(mapping).collect())
    }

    /// End of the mapping that holds `address`.
    pub fn end_of(&self, address: u64) -> Option<u64> {
        self.0.iter().find(|mapping| (mapping.start..mapping.end).contains(&address)).map(|mapping| mapping.end)
    }
}

struct Program {
    name: String,
    /// Difference between addresses in the process and in the file.
    bias: u64,
    range: std::ops::Range<u64>,
    lines: Option<Lines>,
    /// Start, end and mangled name of each function, by file address. Release builds have no line
    /// information of other packages.
    functions: Vec<(u64, u64, String)>,
}

impl Program {
    /// The function that contains file address `inside`, from the symbol table.
    fn function(&self, inside: u64) -> Option<String> {
        let after = self.functions.partition_point(|(start, ..)| *start <= inside);
        let (_, _, name) = self.functions.get(after.checked_sub(1)?).filter(|(_, end, _)| inside < *end)?;
        Some(plain(&addr2line::demangle(name, gimli::DW_LANG_Rust).unwrap_or_else(|| name.clone())))
    }
}

/// The tables of one process, which name addresses.
pub struct Symbols {
    programs: Vec<Program>,
    unwinder: UnwinderNative<Vec<u8>, MayAllocateDuringUnwind>,
    cache: CacheNative<MayAllocateDuringUnwind>,
}

impl Symbols {
    /// The tables of this process.
    pub fn own() -> Symbols {
        Symbols::of(&Maps::own().unwrap_or_default())
    }

    /// The tables of the process with these mappings. If a file cannot be read, its frames are
    /// shown as addresses.
    pub fn of(maps: &Maps) -> Symbols {
        let mut symbols = Symbols { programs: Vec::new(), unwinder: UnwinderNative::new(), cache: CacheNative::new() };
        for mapping in maps.0.iter().filter(|mapping| mapping.runs) {
            if let Some(path) = &mapping.path {
                // A file that is not a program has no frames.
                let _ = symbols.read(path, mapping);
            }
        }
        symbols
    }

    fn read(&mut self, path: &Path, mapping: &Mapping) -> Option<()> {
        let file = std::fs::File::open(path).ok()?;
        if file.metadata().ok()?.len() > FILE_MAX {
            return None;
        }
        let cache = object::ReadCache::new(file);
        let object = object::File::parse(&cache).ok()?;
        // Neighbouring segments may share a page: use the segment that fills most of the mapping.
        let last = mapping.offset + (mapping.end - mapping.start);
        let shared = |segment: &object::Segment<'_, '_, _>| {
            let (offset, size) = segment.file_range();
            (offset + size).min(last).saturating_sub(offset.max(mapping.offset))
        };
        let segment = object.segments().max_by_key(shared).filter(|segment| shared(segment) > 0)?;
        let at = segment.address().wrapping_add(mapping.offset).wrapping_sub(segment.file_range().0);
        let bias = mapping.start.wrapping_sub(at);
        let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let section = |name: &str| object.section_by_name(name);
        let data = |name: &str| section(name).and_then(|section| section.data().ok()).map(<[u8]>::to_vec);
        let place = |name: &str| section(name).map(|section| section.address()..section.address() + section.size());
        let info = ExplicitModuleSectionInfo {
            base_svma: 0,
            text_svma: place(".text"),
            text: data(".text"),
            got_svma: place(".got"),
            eh_frame_svma: place(".eh_frame"),
            eh_frame: data(".eh_frame"),
            eh_frame_hdr_svma: place(".eh_frame_hdr"),
            eh_frame_hdr: data(".eh_frame_hdr"),
            ..Default::default()
        };
        let range = mapping.start..mapping.end;
        self.unwinder.add_module(Module::new(name.clone(), range.clone(), bias, info));
        let functions = functions(&object);
        // What was read so far is freed before the large tables are read.
        let lines = lines(&cache.into_inner());
        self.programs.push(Program { name, bias, range, lines, functions });
        Some(())
    }

    /// The sample's frames as text.
    pub fn name(&mut self, sample: &Sample) -> NamedStack {
        let mut named = NamedStack::default();
        for (depth, address) in self.addresses(sample).into_iter().enumerate() {
            // A return address may belong to the line after the call, so use the byte before.
            let place = if depth == 0 { address } else { address.wrapping_sub(1) };
            self.frame(place, &mut named);
            if named.frames.len() >= FRAMES_MAX {
                break;
            }
        }
        named
    }

    fn addresses(&mut self, sample: &Sample) -> Vec<u64> {
        let mut read = |address: u64| {
            let at = address.checked_sub(sample.sp).ok_or(())? / 8;
            sample.words.get(usize::try_from(at).map_err(|_| ())?).copied().ok_or(())
        };
        let registers = registers(sample);
        let mut frames = self.unwinder.iter_frames(sample.pc, registers, &mut self.cache, &mut read);
        let mut found = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            found.push(frame.address());
            if found.len() >= FRAMES_MAX {
                break;
            }
        }
        found
    }

    fn frame(&self, address: u64, named: &mut NamedStack) {
        let Some(program) = self.programs.iter().find(|program| program.range.contains(&address)) else {
            named.frames.push(format!("{address:#x}"));
            return;
        };
        let inside = address.wrapping_sub(program.bias);
        let mut count = 0;
        if let Some(frames) = program.lines.as_ref().and_then(|lines| lines.find_frames(inside).skip_all_loads().ok()) {
            let mut frames = frames;
            while let Ok(Some(frame)) = frames.next() {
                let Some(function) = frame.function else { break };
                let name = function.demangle().map_or_else(|_| "?".to_owned(), |name| plain(name.as_ref()));
                let place = frame.location.and_then(|location| Some((location.file?.to_owned(), location.line?)));
                named.frames.push(match &place {
                    Some((file, line)) => format!("{name} ({}:{line})", short(file)),
                    None => name.clone(),
                });
                if let Some((file, line)) = place.filter(|(file, _)| !FOREIGN.iter().any(|part| file.contains(part)))
                    && named.culprit.is_none()
                {
                    named.culprit = Some(format!("{}:{line} ({name})", short(&file)));
                }
                count += 1;
            }
        }
        if count == 0 {
            let unnamed = || format!("{} + {inside:#x}", program.name);
            named.frames.push(program.function(inside).unwrap_or_else(unnamed));
        }
    }
}

/// A function's name without the compiler's hash.
fn plain(name: &str) -> String {
    match name.rsplit_once("::h") {
        Some((head, mark)) if mark.len() == 16 && mark.bytes().all(|byte| byte.is_ascii_hexdigit()) => head.to_owned(),
        _ => name.to_owned(),
    }
}

fn short(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

/// The line tables of a program. At any time at most one section is in memory compressed.
fn lines(file: &std::fs::File) -> Option<Lines> {
    let load = |id: gimli::SectionId| -> Result<EndianArcSlice<LittleEndian>, gimli::Error> {
        let cache = object::ReadCache::new(file);
        let object = object::File::parse(&cache).ok();
        let section = object.as_ref().and_then(|object| object.section_by_name(id.name()));
        let bytes = section.and_then(|section| uncompressed(&section));
        Ok(EndianArcSlice::new(bytes.unwrap_or_default(), LittleEndian))
    };
    let dwarf = gimli::Dwarf::load(load).ok()?;
    Lines::from_dwarf(dwarf).ok()
}

fn functions<'d>(object: &impl Object<'d>) -> Vec<(u64, u64, String)> {
    let functions = object.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition());
    let mut found: Vec<_> = functions
        .filter_map(|symbol| {
            let start = symbol.address();
            Some((start, start.saturating_add(symbol.size()), symbol.name().ok()?.to_owned()))
        })
        .collect();
    found.sort_unstable();
    found
}

/// The bytes of a section. The linker compresses sections of a release build with zlib. `None` if
/// they are damaged, longer than [`FILE_MAX`], or compressed in another way.
fn uncompressed<'d>(section: &impl ObjectSection<'d>) -> Option<Bytes> {
    let found = section.compressed_data().ok()?;
    match found.format {
        CompressionFormat::None => Some(Bytes::from(found.data)),
        CompressionFormat::Zlib
            if found.uncompressed_size <= FILE_MAX.min(ZLIB_RATIO_MAX * found.data.len() as u64) =>
        {
            // Into its place: a copy would be some tens of megabytes.
            let mut bytes: Bytes = std::iter::repeat_n(0, found.uncompressed_size as usize).collect();
            let mut decoder = flate2::read::ZlibDecoder::new(found.data);
            decoder.read_exact(Arc::get_mut(&mut bytes)?).ok()?;
            (decoder.read(&mut [0]).ok()? == 0).then_some(bytes)
        }
        _ => None,
    }
}

#[cfg(target_arch = "x86_64")]
fn registers(sample: &Sample) -> framehop::UnwindRegsNative {
    framehop::UnwindRegsNative::new(sample.pc, sample.sp, sample.fp)
}

#[cfg(target_arch = "aarch64")]
fn registers(sample: &Sample) -> framehop::UnwindRegsNative {
    framehop::UnwindRegsNative::new(sample.lr, sample.sp, sample.fp)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::*;
    use object::elf::{ELFCOMPRESS_ZLIB, SHF_COMPRESSED};
    use std::io::Write;

    const TEXT: &[u8] = b"src/dispatch.rs src/dispatch.rs src/dispatch.rs src/dispatch.rs";

    /// A program with one section `.debug_str`, compressed, that claims `size` bytes.
    fn program(compressed: &[u8], size: u64) -> Vec<u8> {
        let names = b"\0.debug_str\0.names\0";
        // Behind the program's header: kind, reserved, size, alignment, and then the compressed
        // bytes.
        let mut section = [ELFCOMPRESS_ZLIB.0.to_le_bytes(), [0; 4]].concat();
        section.extend([size.to_le_bytes(), 1u64.to_le_bytes()].concat());
        section.extend(compressed);
        let (at, names_at) = (64, 64 + section.len() as u64);
        let header = |name: u32, kind: u32, flags: u64, at: u64, size: usize| {
            let words = [flags, 0, at, size as u64, 0, 1, 0].map(u64::to_le_bytes).concat();
            [name.to_le_bytes().to_vec(), kind.to_le_bytes().to_vec(), words].concat()
        };
        let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
        bytes.resize(16, 0);
        bytes.extend([2u16, 62].map(u16::to_le_bytes).concat());
        bytes.extend(1u32.to_le_bytes());
        bytes.extend([0, 0, names_at + names.len() as u64].map(u64::to_le_bytes).concat());
        bytes.extend(0u32.to_le_bytes());
        bytes.extend([64u16, 0, 0, 64, 3, 2].map(u16::to_le_bytes).concat());
        bytes.extend(&section);
        bytes.extend(names);
        bytes.extend(header(0, 0, 0, 0, 0));
        bytes.extend(header(1, 1, SHF_COMPRESSED.0, at, section.len()));
        bytes.extend(header(12, 3, 0, names_at, names.len()));
        bytes
    }

    fn debug_str(program: &[u8]) -> Option<Vec<u8>> {
        let object = object::File::parse(program).unwrap();
        uncompressed(&object.section_by_name(".debug_str").unwrap()).map(|bytes| bytes.to_vec())
    }

    #[test]
    fn a_compressed_section_is_read_and_a_damaged_or_missized_one_is_skipped() {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(TEXT).unwrap();
        let compressed = encoder.finish().unwrap();
        let size = TEXT.len() as u64;
        assert_eq!(debug_str(&program(&compressed, size)).as_deref(), Some(TEXT));
        let whole = &compressed[..];
        for (bytes, size) in [(whole, size + 1), (whole, size - 1), (&whole[..8], size), (whole, u64::MAX)] {
            assert_eq!(debug_str(&program(bytes, size)), None, "{size}");
        }
    }
}
