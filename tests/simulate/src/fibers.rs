//! Many programs on one thread: exactly one runs, and the seed says which is next.
//!
//! A program gives way wherever it talks to others or to a store ([`give_way`]), and when it waits
//! ([`wait`]). Threads that a program starts itself have no fiber: what they do happens while their
//! program has its turn, and it waits for them as ever.
//!
//! The clock counts turns. It jumps when everybody waits for some time to come. When everybody
//! waits for nothing, the programs are stuck: all waits then fail, so that they can end.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

use crate::chance::Chance;
use crate::world::World;

const STACK_BYTES: usize = 1 << 20;
/// More turns than any run takes: nobody may wait for ever, nor turn in circles.
const TURNS_MAX: u64 = 200_000;

/// Why a program gives way.
#[derive(Clone, Copy)]
enum Rest {
    /// Others may go first.
    Briefly,
    /// Until something changes, or until that time.
    Until(Option<u64>),
}

type Way = Yielder<(), Rest>;

thread_local! {
    static WAY: Cell<*const Way> = const { Cell::new(std::ptr::null()) };
    static STACKS: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

/// The time of a run, in turns, and whether anything has changed that others may wait for.
#[derive(Default)]
pub struct Clock {
    now: AtomicU64,
    changes: AtomicU64,
    stuck: AtomicBool,
}

impl Clock {
    /// The time.
    pub fn now(&self) -> u64 {
        self.now.load(SeqCst)
    }

    /// Something has changed.
    pub fn change(&self) {
        self.changes.fetch_add(1, SeqCst);
    }

    /// Whether everybody waits for what never comes.
    pub fn is_stuck(&self) -> bool {
        self.stuck.load(SeqCst)
    }
}

/// Lets others go first, if the seed wants it.
pub fn give_way() {
    rest(Rest::Briefly);
}

/// Waits until something has changed, or until that time.
pub fn wait(until: Option<u64>) {
    rest(Rest::Until(until));
}

fn rest(how: Rest) {
    let way = WAY.get();
    if way.is_null() {
        return;
    }
    // SAFETY: set while the fiber of this yielder runs, and only that fiber is here.
    unsafe { (*way).suspend(how) };
    WAY.set(way);
}

struct Fiber {
    coroutine: Coroutine<(), Rest, (), DefaultStack>,
    way: *const Way,
    seen: u64,
    rest: Rest,
}

impl Fiber {
    fn is_ready(&self, clock: &Clock) -> bool {
        match self.rest {
            Rest::Briefly => true,
            Rest::Until(time) => {
                self.seen != clock.changes.load(SeqCst)
                    || time.is_some_and(|time| time <= clock.now())
            }
        }
    }
}

/// Runs programs to their ends. That one panics, and that they wait or go on for ever, is wrong.
pub fn run(world: &World, chance: &mut Chance, programs: Vec<Box<dyn FnOnce()>>) {
    let clock = &world.clock;
    let count = programs.len();
    let panics = Rc::new(RefCell::new(vec![None::<String>; count]));
    let begun = clock.now();
    let mut fibers: Vec<Option<Fiber>> = programs
        .into_iter()
        .enumerate()
        .map(|(at, program)| {
            let panics = Rc::clone(&panics);
            let body = move |way: &Way, ()| {
                WAY.set(way);
                if let Err(panic) = catch_unwind(AssertUnwindSafe(program)) {
                    panics.borrow_mut()[at] = Some(text_of(&*panic));
                }
            };
            let coroutine = Coroutine::with_stack(stack(), body);
            let way = std::ptr::null();
            Some(Fiber { coroutine, way, seen: 0, rest: Rest::Briefly })
        })
        .collect();
    let mut was_stuck = false;
    loop {
        let ready: Vec<usize> = (0..count)
            .filter(|at| fibers[*at].as_ref().is_some_and(|fiber| fiber.is_ready(clock)))
            .collect();
        if ready.is_empty() {
            let left = fibers.iter().flatten();
            let times = left.clone().filter_map(|fiber| match fiber.rest {
                Rest::Until(time) => time,
                Rest::Briefly => None,
            });
            match times.min() {
                Some(time) => clock.now.store(time, SeqCst),
                None if left.count() == 0 => break,
                None => {
                    was_stuck = true;
                    clock.stuck.store(true, SeqCst);
                    clock.change();
                }
            }
            continue;
        }
        if clock.now() - begun > TURNS_MAX {
            was_stuck = true;
            clock.stuck.store(true, SeqCst);
        }
        let at = *chance.pick(&ready);
        take_turn(clock, &mut fibers[at]);
    }
    clock.stuck.store(false, SeqCst);
    if was_stuck {
        world.wrong("they wait for ever".into());
    }
    for (at, panic) in panics.take().into_iter().enumerate() {
        if let Some(panic) = panic {
            world.wrong(format!("program {at} panicked: {panic}"));
        }
    }
}

fn take_turn(clock: &Clock, slot: &mut Option<Fiber>) {
    let Some(fiber) = slot else { return };
    clock.now.fetch_add(1, SeqCst);
    WAY.set(fiber.way);
    let result = fiber.coroutine.resume(());
    fiber.way = WAY.replace(std::ptr::null());
    fiber.seen = clock.changes.load(SeqCst);
    match result {
        CoroutineResult::Yield(rest) => fiber.rest = rest,
        CoroutineResult::Return(()) => {
            // Whoever ends may be what others wait for.
            clock.change();
            if let Some(fiber) = slot.take() {
                STACKS.with_borrow_mut(|stacks| stacks.push(fiber.coroutine.into_stack()));
            }
        }
    }
}

fn stack() -> DefaultStack {
    let kept = STACKS.with_borrow_mut(Vec::pop);
    kept.unwrap_or_else(|| DefaultStack::new(STACK_BYTES).expect("memory for a stack"))
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "?".into())
}
