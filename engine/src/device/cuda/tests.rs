//! Compares the kernels' source, compiled as C, with the CPU predecoder; and tests machines without
//! a device.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, clippy::disallowed_types, reason = "harness")]

use super::layout::{Seat, Silo};
use super::rig::Reports;
use crate::code::{Model, Sampler, bundled_named};
use crate::predecode::{Local, Predecoder, Tables};
use crate::units::Ticks;
use libloading::Library;
use pinwheel_edge::slot::jobs::{FreeJobs, JobBank};
use pinwheel_edge::slot::table::{Geometry, SlotTable, table};
use pinwheel_edge::slot::workers::{DispatchWorkers, PollWorkers, Settled, WorkerBank, WorkerEnds, bank};
use pinwheel_edge::sync::read_words;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, OnceLock};

type HostGraph = unsafe extern "C" fn(*const Silo, u32, u32);

/// The kernels compiled for this host, once.
fn host_graph() -> HostGraph {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    let library = LIBRARY.get_or_init(|| {
        let engine = Path::new(env!("CARGO_MANIFEST_DIR"));
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("kernels.so");
        let compiled = Command::new("cc")
            .args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"])
            .arg("-I")
            .arg(engine.join("kernels"))
            .arg("-o")
            .arg(&out)
            .arg(engine.join("tests/fake-driver/host.c"))
            .status()
            .unwrap();
        assert!(compiled.success(), "the kernels must compile as C");
        // SAFETY: a library built here, without initialisers.
        unsafe { Library::new(&out) }.unwrap()
    });
    // SAFETY: the function's type in host.c.
    *unsafe { library.get::<HostGraph>(b"pinwheel_host_graph") }.unwrap()
}

/// A silo without a driver: real mailbox words, with host memory as device memory.
struct Host {
    table: Arc<SlotTable>,
    jobs: JobBank,
    free: FreeJobs,
    dispatch: DispatchWorkers,
    poll: PollWorkers,
    bank: Arc<WorkerBank>,
    silo: Silo,
    seats: Vec<Seat>,
    /// The payloads at an address other than the host's, as on a device.
    payload: Vec<u64>,
    /// The memory that `silo` points into.
    _held: (Vec<u64>, Vec<u64>, Vec<u64>, Tables, Reports),
    slot: u32,
}

impl Host {
    fn new(model: &Model, tables: Tables, workers: usize) -> Host {
        let (words, flips) = (model.detector_words(), model.observable_words());
        let geometry = Geometry { slots: 8, detector_words: words as u32, observable_words: flips as u32 };
        let (_feed, _dispatch, _harvest, table) = table(geometry);
        let WorkerEnds { dispatch, poll, words: bank, .. } = bank(workers);
        let (jobs, (free, [])) = (JobBank::new(2 * workers, words, flips), FreeJobs::new(2 * workers));
        let (reports, payload) = (Reports::new(workers), vec![0u64; 8 * words]);
        let scratch = (vec![0u64; workers * words], vec![0u64; workers * words], vec![0u64; workers * flips]);
        let mut host = Host {
            silo: Silo {
                payload: payload.as_ptr().expose_provenance() as u64,
                payload_host: table.payload_span().address,
                payload_words: table.payload_span().bytes / 8,
                residuals_out: jobs.detectors_span().address,
                flips_out: jobs.observables_span().address,
                syndromes: scratch.0.as_ptr().expose_provenance() as u64,
                residuals: scratch.1.as_ptr().expose_provenance() as u64,
                flips: scratch.2.as_ptr().expose_provenance() as u64,
                near_from: tables.near_from.as_ptr().expose_provenance() as u64,
                near_word: tables.near_word.as_ptr().expose_provenance() as u64,
                near_mask: tables.near_mask.as_ptr().expose_provenance() as u64,
                way_from: tables.way_from.as_ptr().expose_provenance() as u64,
                way_partner: tables.way_partner.as_ptr().expose_provenance() as u64,
                way_flips: tables.way_flips.as_ptr().expose_provenance() as u64,
                words: words as u32,
                observable_words: flips as u32,
                detectors: tables.detectors(),
                jobs: jobs.len() as u32,
                ..Silo::default()
            },
            table,
            jobs,
            free,
            dispatch,
            poll,
            bank,
            seats: Vec::new(),
            payload,
            _held: (scratch.0, scratch.1, scratch.2, tables, reports),
            slot: 0,
        };
        host.seats = (0..workers).map(|w| host.seat(w)).collect();
        host.silo.seats = host.seats.as_mut_ptr().expose_provenance() as u64;
        host
    }

    fn seat(&self, w: usize) -> Seat {
        let words = self.bank.device_words(w);
        let report = self._held.4.line(w).address;
        let (address, job, doorbell, ready) = (words.address, words.job, words.doorbell, words.ready);
        Seat { address, job, doorbell, ready, report, ..Seat::default() }
    }

    /// Writes a shot and starts a worker on it; uses the slots in turn.
    fn start(&mut self, shot: &[u64]) -> usize {
        let (slot, words) = (self.slot as usize, self.silo.words as usize);
        self.slot = (self.slot + 1) % 8;
        self.payload[slot * words..][..words].copy_from_slice(shot);
        let address = self.table.payload_address(slot as u32);
        let w = self.dispatch.take_idle().unwrap();
        let ticket = self.table.ticket_at(slot as u64);
        let generation = self.dispatch.start(w, address, self.free.take().unwrap(), ticket, Ticks(1));
        self.bank.ring(w, generation);
        w
    }

    fn launch(&self, first: u32, blocks: u32) {
        // SAFETY: the silo points into memory of this host, of the sizes that it states.
        unsafe { host_graph()(&raw const self.silo, first, blocks) };
    }

    /// Residual and flips of worker `w`'s completion, if it has completed.
    fn take(&mut self, w: usize) -> Option<(Vec<u64>, Vec<u64>)> {
        if !self.poll.claim_ready(w) {
            return None;
        }
        let Settled::Job { job, generation, .. } = self.poll.settle(w) else { panic!("no completion is late here") };
        let mut found = (vec![0; self.silo.words as usize], vec![0; self.silo.observable_words as usize]);
        read_words(self.jobs.detectors(&job), &mut found.0);
        read_words(self.jobs.observables(&job), &mut found.1);
        self.poll.release(w, generation);
        self.free.give(job);
        Some(found)
    }
}

#[test]
fn the_kernels_resolve_bit_for_bit_what_the_cpu_predecoder_does() {
    for (name, shots) in [("surface_d3", 10_000), ("surface_d5", 10_000), ("surface_d5@r50", 2_000)] {
        let model = bundled_named(name).unwrap();
        let mut local = Local::new(&model).unwrap();
        let flips = model.observable_words();
        let mut host = Host::new(&model, local.tables(flips), 1);
        let mut sampler = Sampler::new(&model, 11);
        let mut shot = vec![0; model.detector_words()];
        let mut expected = (shot.clone(), vec![0; flips]);
        let mut resolved = 0;
        for index in 0..shots {
            sampler.draw(&mut shot, &mut expected.1);
            resolved += u64::from(local.predecode(&shot, &mut expected.0, &mut expected.1).resolved);
            let w = host.start(&shot);
            host.launch(0, 1);
            assert_eq!(host.take(w).as_ref(), Some(&expected), "{name}, shot {index}");
        }
        assert!(resolved > shots / 10, "{name}: {resolved}");
        assert_eq!(host._held.4.removed(0), resolved, "{name}: the report must count the removed events");
    }
}

#[test]
fn without_a_predecoder_every_shot_is_handed_on() {
    let model = bundled_named("surface_d5").unwrap();
    let mut host = Host::new(&model, Tables::empty(), 1);
    let w = host.start(&[u64::MAX, 5]);
    host.launch(0, 1);
    assert_eq!(host.take(w), Some((vec![u64::MAX, 5], vec![0])));
}

#[test]
fn a_launch_of_a_group_serves_each_new_mail_once() {
    let model = bundled_named("surface_d3").unwrap();
    let mut host = Host::new(&model, Tables::empty(), 4);
    assert_eq!([host.start(&[1]), host.start(&[2])], [0, 1]);
    host.launch(0, 4);
    assert_eq!(host.take(0), Some((vec![1], vec![0])));
    // No new mail: neither the unclaimed worker nor the free ones complete again.
    host.launch(0, 4);
    assert_eq!(host.take(1), Some((vec![2], vec![0])));
    assert_eq!([0, 1, 2, 3].map(|w| host.take(w)), [const { None }; 4]);
    // A launch serves only the workers of its group.
    assert_eq!([host.start(&[3]), host.start(&[4]), host.start(&[5])], [0, 1, 2]);
    host.launch(2, 2);
    assert_eq!((host.take(0), host.take(2)), (None, Some((vec![5], vec![0]))));
    host.launch(0, 2);
    assert_eq!([0, 1].map(|w| host.take(w).unwrap().0), [[3], [4]]);
}

#[test]
fn an_address_outside_the_payloads_reads_as_an_empty_syndrome() {
    let model = bundled_named("surface_d3").unwrap();
    let mut host = Host::new(&model, Tables::empty(), 1);
    let first = host.table.payload_address(0);
    for address in [first - 8, first + 4, first + 8 * 8, 0, u64::MAX] {
        host.payload.fill(7);
        let w = host.dispatch.take_idle().unwrap();
        let ticket = host.table.ticket_at(0);
        let generation = host.dispatch.start(w, address, host.free.take().unwrap(), ticket, Ticks(1));
        host.bank.ring(w, generation);
        host.launch(0, 1);
        assert_eq!(host.take(w), Some((vec![0], vec![0])), "{address:#x}");
    }
}
