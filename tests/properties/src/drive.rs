//! Drives a property with the inputs of its corpus and with mutations of them, the same ones in
//! every run: a fuzzer without eyes, for machines that have a stable compiler only.
#![expect(clippy::print_stdout, reason = "it runs in tests, which show it if they fail")]

use crate::Property;
use fastrand::Rng;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Seconds that each property is driven, a second if not set. With it set, the input at hand is
/// written to a file before it is tried, so that one that ends the process is not lost.
pub const SECONDS: &str = "FUZZ_SECONDS";
/// Another number, other mutations.
pub const SEED: &str = "FUZZ_SEED";

/// The stack that an executor's thread has: what overflows it would end a host.
const STACK_BYTES: usize = 2 << 20;
const INPUT_BYTES_MAX: usize = 256 << 10;
/// An input that takes longer is a finding. Far more than any takes, also unoptimised.
const PATIENCE: Duration = Duration::from_secs(20);

/// Tries inputs until the time is over, and panics at the first that the property does not hold
/// for. That input is then in `folder`.
pub fn drive(name: &'static str, property: Property, folder: &Path) {
    let asked = std::env::var(SECONDS).ok().and_then(|seconds| seconds.parse().ok());
    let driver = Driver {
        name,
        property,
        kept: folder.join(format!("{name}.input")),
        always_kept: asked.is_some(),
        until: Instant::now() + Duration::from_secs_f64(asked.unwrap_or(1.0)),
    };
    let thread = std::thread::Builder::new().name(name.into()).stack_size(STACK_BYTES);
    let run = thread.spawn(move || driver.run()).unwrap_or_else(|error| panic!("{error}"));
    if let Err(panic) = run.join() {
        resume_unwind(panic);
    }
}

struct Driver {
    name: &'static str,
    property: Property,
    kept: PathBuf,
    always_kept: bool,
    until: Instant,
}

impl Driver {
    fn run(&self) {
        let seeds = corpus(self.name);
        seeds.iter().for_each(|seed| self.take(seed));
        let mut mutator = Mutator { rng: rng(self.name), seeds: &seeds };
        let mut tried = seeds.len();
        while Instant::now() < self.until {
            self.take(&mutator.input());
            tried += 1;
        }
        println!("{}: {} seeds, {tried} inputs", self.name, seeds.len());
    }

    fn take(&self, input: &[u8]) {
        if self.always_kept {
            self.keep(input);
        }
        let began = Instant::now();
        let held = catch_unwind(AssertUnwindSafe(|| (self.property)(input)));
        let slow = began.elapsed() > PATIENCE;
        if held.is_err() || slow {
            self.keep(input);
            println!("{}: the input is in {}", self.name, self.kept.display());
        }
        if let Err(panic) = held {
            resume_unwind(panic);
        }
        assert!(!slow, "an input took {:?}", began.elapsed());
    }

    fn keep(&self, input: &[u8]) {
        if let Err(error) = std::fs::write(&self.kept, input) {
            println!("{}: {error}", self.kept.display());
        }
    }
}

/// The inputs of a property that are kept, in the order of their names.
pub fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(name);
    let entries = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("the corpus {}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} has no inputs", folder.display());
    let read = |path: &PathBuf| std::fs::read(path);
    paths.iter().map(read).collect::<Result<_, _>>().unwrap_or_else(|error| panic!("{error}"))
}

fn rng(name: &str) -> Rng {
    let seed: u64 = std::env::var(SEED).ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    let mut hasher = DefaultHasher::new();
    (name, seed).hash(&mut hasher);
    Rng::with_seed(hasher.finish())
}

/// Makes inputs of seeds.
struct Mutator<'a> {
    rng: Rng,
    seeds: &'a [Vec<u8>],
}

/// Bytes that mean something to one parser or another.
const TOKENS: &[&[u8]] = &[
    b"\0",
    b"\xff",
    b"\xc3",
    b"\xe2\x80\xae",
    b"\x1b[31m",
    b"\r\n",
    b"\n",
    b"{",
    b"}",
    b"[",
    b"]",
    b"(",
    b")",
    b"\"",
    b"\\",
    b"\\u0000",
    b"\\ud800",
    b":",
    b",",
    b"/",
    b"..",
    b"%2e",
    b"%",
    b"@",
    b"#",
    b"$",
    b"*",
    b"=",
    b"-1",
    b"0",
    b"1e999",
    b"18446744073709551616",
    b"null",
    b"true",
    b"{\"$ref\":\"#\"}",
    b"\"anyOf\":[",
    b"${results.",
    b"data: ",
    b"\x7f",
    b"\x80\x80\x80\x80\x01",
    b";;",
    b"(;",
    b"'''",
    b"[[",
    b" ",
];

impl Mutator<'_> {
    fn input(&mut self) -> Vec<u8> {
        let mut input = self.seed().to_vec();
        for _ in 0..self.rng.usize(1..=6) {
            self.mutate(&mut input);
        }
        input.truncate(INPUT_BYTES_MAX);
        input
    }

    fn seed(&mut self) -> &[u8] {
        let at = self.rng.usize(..self.seeds.len());
        &self.seeds[at]
    }

    fn mutate(&mut self, input: &mut Vec<u8>) {
        let (from, to) = self.range(input.len());
        match self.rng.u8(..8) {
            0 => drop(input.drain(from..to)),
            1 => self.flip(input),
            2 => insert(input, from, TOKENS[self.rng.usize(..TOKENS.len())]),
            3 => {
                let piece = input[from..to].to_vec();
                let at = self.rng.usize(..=input.len());
                insert(input, at, &piece);
            }
            // Nesting, and length.
            4 => {
                let piece = match self.rng.bool() {
                    true => TOKENS[self.rng.usize(..TOKENS.len())].to_vec(),
                    false => input[from..to.min(from + 64)].to_vec(),
                };
                let times = 1 << self.rng.u32(1..16);
                insert(
                    input,
                    from,
                    &piece.repeat(times.min(1 + INPUT_BYTES_MAX / piece.len().max(1))),
                );
            }
            5 => {
                let other = self.seed().to_vec();
                let (start, end) = self.range(other.len());
                input.splice(from..to, other[start..end].iter().copied());
            }
            6 => {
                let noise: Vec<u8> = (0..self.rng.usize(1..16)).map(|_| self.rng.u8(..)).collect();
                insert(input, from, &noise);
            }
            _ => input.truncate(to),
        }
    }

    fn flip(&mut self, input: &mut [u8]) {
        if !input.is_empty() {
            let at = self.rng.usize(..input.len());
            input[at] ^= 1 << self.rng.u8(..8);
        }
    }

    /// A range, most often a short one.
    fn range(&mut self, length: usize) -> (usize, usize) {
        let from = self.rng.usize(..=length);
        let most = if self.rng.u8(..4) == 0 { length } else { 16 };
        (from, (from + self.rng.usize(..=most)).min(length))
    }
}

fn insert(input: &mut Vec<u8>, at: usize, piece: &[u8]) {
    input.splice(at..at, piece.iter().copied());
}
