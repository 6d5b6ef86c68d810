//! Chance and time as one call has them. They come from the system unless the operator wants a call
//! to be one that can be made again exactly: then the call has seeds of its own, which stand in its
//! receipt.
//!
//! Whoever has the seeds can compute every random number that the guest got, keys included.

use crate::inspect::hex;
use rand_core::TryRng;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use wasmtime_wasi::WasiCtxBuilder;
use wasmtime_wasi::clocks::{HostMonotonicClock, HostWallClock};

/// Where the random numbers and the clocks of calls come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Chance {
    /// From the system.
    #[default]
    System,
    /// From seeds that are drawn for each call and stand in its receipt.
    Recorded,
    /// From these seeds, for every call.
    Repeated(Seeds),
}

/// What a call can be repeated from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Written", try_from = "Written")]
pub struct Seeds {
    /// Every random number comes from these bytes.
    pub random: [u8; 32],
    /// What the clock shows when the call begins: microseconds since 1970. While the guest computes
    /// it stands still, but for a microsecond at each reading; it moves on as the guest sleeps.
    pub clock_us: u64,
}

/// The seeds as they stand in a receipt.
#[derive(Clone, Serialize, Deserialize)]
struct Written {
    /// 64 hex digits.
    random: String,
    clock_us: u64,
}

impl Chance {
    /// The seeds of the next call.
    pub(crate) fn seeds(self) -> Option<Seeds> {
        match self {
            Self::System => None,
            Self::Recorded => Some(Seeds::draw()),
            Self::Repeated(seeds) => Some(seeds),
        }
    }
}

impl Seeds {
    fn draw() -> Self {
        let mut random = [0; 32];
        // The generator of the engine's WASI cannot fail.
        let Ok(()) = wasmtime_wasi::random::thread_rng().try_fill_bytes(&mut random);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { random, clock_us: u64::try_from(now.as_micros()).unwrap_or(0) }
    }

    /// Puts the seeds in the place of the system's generators and clocks.
    pub(crate) fn plant(&self, builder: &mut WasiCtxBuilder, clock: &Arc<StillClock>) {
        let mut seed = [0; 16];
        let Ok(()) = self.generator("insecure-seed").try_fill_bytes(&mut seed);
        builder
            .secure_random(self.generator("random"))
            .insecure_random(self.generator("insecure"))
            .insecure_random_seed(u128::from_le_bytes(seed))
            .wall_clock(Shared(clock.clone()))
            .monotonic_clock(Shared(clock.clone()));
    }

    fn generator(&self, purpose: &str) -> Generator {
        let key = Sha256::new().chain_update(self.random).chain_update(purpose).finalize().into();
        Generator { key, block: [0; 32], used: 32, blocks: 0 }
    }
}

impl From<Seeds> for Written {
    fn from(seeds: Seeds) -> Self {
        Self { random: hex(&seeds.random), clock_us: seeds.clock_us }
    }
}

impl TryFrom<Written> for Seeds {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let digits = written.random.as_bytes();
        let mut random = [0; 32];
        let whole = digits.len() == 64 && digits.iter().all(u8::is_ascii_hexdigit);
        for (byte, pair) in random.iter_mut().zip(digits.chunks(2)) {
            let pair = std::str::from_utf8(pair).ok().filter(|_| whole);
            *byte = pair
                .and_then(|pair| u8::from_str_radix(pair, 16).ok())
                .ok_or("`random` is no text of 64 hex digits")?;
        }
        if !whole {
            return Err("`random` is no text of 64 hex digits".into());
        }
        Ok(Self { random, clock_us: written.clock_us })
    }
}

/// SHA-256 in counter mode: the same numbers in every version of this program.
struct Generator {
    key: [u8; 32],
    block: [u8; 32],
    used: usize,
    blocks: u64,
}

impl TryRng for Generator {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let mut bytes = [0; 4];
        self.try_fill_bytes(&mut bytes).map(|()| u32::from_le_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let mut bytes = [0; 8];
        self.try_fill_bytes(&mut bytes).map(|()| u64::from_le_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for byte in bytes {
            if self.used == self.block.len() {
                let block =
                    Sha256::new().chain_update(self.key).chain_update(self.blocks.to_le_bytes());
                self.block = block.finalize().into();
                self.blocks += 1;
                self.used = 0;
            }
            *byte = self.block[self.used];
            self.used += 1;
        }
        Ok(())
    }
}

/// A clock that moves only with what the guest does.
pub(crate) struct StillClock {
    began: Duration,
    passed_ns: AtomicU64,
}

/// What the clock moves on at each reading, so that a loop that waits for it comes to an end.
const TICK_NS: u64 = 1_000;

impl StillClock {
    pub(crate) fn new(seeds: &Seeds) -> Arc<Self> {
        let began = Duration::from_micros(seeds.clock_us);
        Arc::new(Self { began, passed_ns: AtomicU64::new(0) })
    }

    /// How far it is now, without moving it.
    pub(crate) fn passed_ns(&self) -> u64 {
        self.passed_ns.load(Ordering::Relaxed)
    }

    /// A sleep is over that was to last until then.
    pub(crate) fn reach(&self, passed_ns: u64) {
        self.passed_ns.fetch_max(passed_ns, Ordering::Relaxed);
    }

    fn read_ns(&self) -> u64 {
        self.passed_ns.fetch_add(TICK_NS, Ordering::Relaxed)
    }
}

/// The clock as the engine's WASI takes it.
struct Shared(Arc<StillClock>);

impl HostWallClock for Shared {
    fn resolution(&self) -> Duration {
        Duration::from_nanos(TICK_NS)
    }

    fn now(&self) -> Duration {
        self.0.began + Duration::from_nanos(self.0.read_ns())
    }
}

impl HostMonotonicClock for Shared {
    fn resolution(&self) -> u64 {
        TICK_NS
    }

    fn now(&self) -> u64 {
        self.0.read_ns()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(seeds: &Seeds, purpose: &str) -> Vec<u8> {
        let mut bytes = vec![0; 100];
        let Ok(()) = seeds.generator(purpose).try_fill_bytes(&mut bytes);
        bytes
    }

    #[test]
    fn the_same_seeds_give_the_same_numbers_and_others_give_others() {
        let (one, other) = (Seeds::draw(), Seeds::draw());
        assert_eq!(numbers(&one, "random"), numbers(&one, "random"));
        assert_ne!(numbers(&one, "random"), numbers(&other, "random"));
        assert_ne!(numbers(&one, "random"), numbers(&one, "insecure"));
        // Whatever the pieces they are taken in.
        let mut generator = one.generator("random");
        let mut pieces = vec![0; 100];
        for piece in pieces.chunks_mut(7) {
            let Ok(()) = generator.try_fill_bytes(piece);
        }
        assert_eq!(pieces, numbers(&one, "random"));
        // For ever: a session is repeated by later versions too.
        let fixed = Seeds { random: [7; 32], clock_us: 0 };
        assert_eq!(hex(&numbers(&fixed, "random")[..8]), "2671fc545c81048e");
    }

    #[test]
    fn seeds_survive_their_receipt() {
        let seeds = Seeds::draw();
        let written = serde_json::to_value(seeds).unwrap();
        assert_eq!(serde_json::from_value::<Seeds>(written).unwrap(), seeds);
        for random in ["", "zz", &"g".repeat(64), &"a".repeat(63), &"é".repeat(32)] {
            let written = serde_json::json!({"random": random, "clock_us": 1});
            assert!(serde_json::from_value::<Seeds>(written).is_err(), "{random}");
        }
    }
}
