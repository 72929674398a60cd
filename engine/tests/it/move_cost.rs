//! What a move costs the thread that runs everything: three silos' roles called in turn by hand
//! under virtual time, each pass timed by itself, so that a busy machine spoils single passes and
//! not the sum.

use pinwheel_edge::spin::Phase;
use pinwheel_engine::board::{Board, Place, Shape};
use pinwheel_engine::clock::Clock;
use pinwheel_engine::code::{Sampler, bundled_named};
use pinwheel_engine::engine::{Authority, MoveRequest, MoveRequests};
use pinwheel_engine::feed::Share;
use pinwheel_engine::feed::source::Source;
use pinwheel_engine::hot::{Frame, Init, Role, Scratch, Settings};
use pinwheel_engine::profile::{Decoder, Predecoder, Silos, Window};
use pinwheel_engine::silo::{Answers, Common, Connected, Decoding, Silo, connect, wire};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

const SILOS: u32 = 3;
const STREAMS: u32 = 12;
/// Of these, streams that move.
const MOVING: u32 = 3;
/// Virtual time of one role's call.
const STEP_NS: u64 = 100;
/// Passes from one move to the next, how often in one go, and goes with moves and without, in turns.
const PASSES: usize = 100;
const TIMES: usize = 500;
const TURNS: usize = 8;

struct World {
    nanos: Arc<AtomicU64>,
    clock: Clock,
    board: Arc<Board>,
    moves: Arc<MoveRequests>,
    roles: Vec<Box<dyn Role>>,
    scratch: Scratch,
    /// What the roles are connected by, and nobody speaks on here.
    _silent: (Vec<Silo>, Vec<pinwheel_engine::silo::SiloNotifiers>),
}

impl World {
    fn new() -> World {
        let mut profile = crate::rig::profile();
        (profile.silos, profile.input.streams) = (Silos::Count(SILOS), STREAMS);
        let model = Arc::new(bundled_named("surface_d3").unwrap());
        let nanos = Arc::new(AtomicU64::new(1_000_000));
        let clock = Clock::virtual_time(Arc::clone(&nanos));
        let (slots, workers) = (profile.slots, profile.device_workers());
        let shape = Shape { threads: 1, silos: SILOS, slots, workers, decoders: 1, streams: STREAMS };
        let board = Arc::new(Board::create(shape, Place::Private).unwrap());
        let settings = Arc::new(Settings::new(&profile.limits));
        settings.set_rate_hz(Some(100_000.0));
        let decoding = Decoding::new(Arc::clone(&model), Decoder::Matching, Predecoder::None, Window::None).unwrap();
        let moves = Arc::new(MoveRequests::new(STREAMS, SILOS, false));
        let common = Common {
            board: Arc::clone(&board),
            settings,
            clock: clock.clone(),
            decoders: decoding.changes(),
            decoding,
            moves: Arc::clone(&moves),
            joints: None,
        };
        let Connected { pieces, notifiers } = connect(SILOS, &model, &moves);
        let mut init = Init { clock: &clock, board: &board };
        let (mut silos, mut roles) = (Vec::new(), Vec::new());
        for (silo, attached) in pieces.into_iter().enumerate() {
            let source = Source::Sampler(Box::new(Sampler::new(&model, silo as u64)));
            let share = Share::of(silo, SILOS, STREAMS, None);
            let mut silo = wire(&profile, share, 1, source, Answers::Counted, attached, &common).unwrap();
            roles.extend(silo.specs.drain(..).map(|spec| (spec.build)(&mut init).unwrap()));
            silos.push(silo);
        }
        World { nanos, clock, board, moves, roles, scratch: Scratch::new(), _silent: (silos, notifiers) }
    }

    /// Calls each role once; how long that took, ns.
    fn pass(&mut self) -> u64 {
        let from = Instant::now();
        for role in &mut self.roles {
            self.nanos.fetch_add(STEP_NS, Ordering::Relaxed);
            let _ = role.work(&mut Frame::new(&self.clock, self.clock.ticks(), Phase::Live, &mut self.scratch));
        }
        from.elapsed().as_nanos() as u64
    }

    fn moved(&self) -> u64 {
        self.board
            .snapshot(&self.clock)
            .silos
            .iter()
            .filter_map(|silo| silo.moves.as_ref())
            .map(|moves| moves.done)
            .sum()
    }

    /// What each of [`PASSES`] passes took, ns, so many times over; with `asked`, before the first
    /// of them a move is asked for.
    fn play(&mut self, times: usize, mut asked: Option<&mut u32>) -> Vec<Vec<u64>> {
        let mut took: Vec<Vec<u64>> = (0..PASSES).map(|_| Vec::with_capacity(times)).collect();
        for _ in 0..times {
            if let Some(asked) = &mut asked {
                let (stream, to) = (**asked % MOVING, **asked / MOVING % SILOS);
                let request = MoveRequest { stream, to, lease_ms: 0, by: Authority::Port };
                **asked += u32::from(self.moves.ask(request).is_ok());
            }
            took.iter_mut().for_each(|took| took.push(self.pass()));
        }
        took
    }
}

/// The mean of those that nothing interrupted.
fn calm(took: &mut [u64]) -> f64 {
    took.sort_unstable();
    let calm = &took[..took.len() * 95 / 100];
    calm.iter().sum::<u64>() as f64 / calm.len() as f64
}

#[test]
#[ignore = "a measurement: some seconds"]
fn a_move_costs_the_thread_that_runs_everything_a_few_microseconds() {
    let mut world = World::new();
    let (mut asked, mut made) = (0, 0);
    let (mut still, mut moving) = (vec![0.0; PASSES], vec![0.0; PASSES]);
    let _ = world.play(TIMES, Some(&mut asked));
    for _ in 0..TURNS {
        // Shots come at the same passes in both, so what they cost is no difference.
        for (sum, mut took) in still.iter_mut().zip(world.play(TIMES, None)) {
            *sum += calm(&mut took) / TURNS as f64;
        }
        let before = world.moved();
        for (sum, mut took) in moving.iter_mut().zip(world.play(TIMES, Some(&mut asked))) {
            *sum += calm(&mut took) / TURNS as f64;
        }
        made += world.moved() - before;
    }
    assert!(made as usize > TIMES * TURNS / 2, "{made} moves");
    let more: Vec<f64> = moving.iter().zip(&still).map(|(moving, still)| moving - still).collect();
    // Long after a move the two differ by what the machine did meanwhile.
    let drift = more[PASSES / 2..].iter().sum::<f64>() / (PASSES - PASSES / 2) as f64;
    let more: Vec<f64> = more[..PASSES / 4].iter().map(|more| more - drift).collect();
    let cost = more.iter().sum::<f64>() * (TIMES * TURNS) as f64 / made as f64;
    let first: Vec<String> = more.iter().map(|more| format!("{more:+.0}")).collect();
    let pass = still.iter().sum::<f64>() / PASSES as f64;
    eprintln!("a pass of {SILOS} silos takes {pass:.0} ns; the first ones of a move, ns more: {}", first.join(" "));
    eprintln!("a move costs {cost:.0} ns, over {made} moves");
    assert!(cost < 50_000.0);
}
