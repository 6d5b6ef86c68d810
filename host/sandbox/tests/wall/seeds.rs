//! Chance and time: different from one call to the next, unless a call is repeated from its seeds.

use crate::support::{Prober, SANDBOX, grants, limits};
use cofferdam_sandbox::{Chance, Limits, Sandbox, SandboxConfig, Seeds};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

async fn prober(chance: Chance) -> Prober {
    let config = SandboxConfig { slots: 2, chance, ..SANDBOX.config().clone() };
    let sandbox = Sandbox::new(config).unwrap();
    Prober::load(&sandbox, Limits::default(), grants::<&str>(&[])).await.unwrap()
}

/// What a guest has of chance and time, the seeds of its call, and its fuel.
async fn chance(prober: &Prober) -> (Value, Option<Seeds>, Option<u64>) {
    let (outcomes, receipt) = prober.try_steps(json!([{"do": "chance", "ms": 20}])).await;
    (outcomes[0]["ok"].clone(), receipt.seeds, receipt.fuel)
}

#[tokio::test]
async fn a_call_is_repeated_exactly_from_its_seeds() {
    let recording = prober(Chance::Recorded).await;
    let (first, seeds, fuel) = chance(&recording).await;
    let (second, others, _) = chance(&recording).await;
    let seeds = seeds.unwrap();
    assert_ne!(others.unwrap().random, seeds.random, "each call has seeds of its own");
    for what in ["random", "insecure", "hashes"] {
        assert_ne!(first[what], second[what], "{what}");
    }
    // The clock begins with the system's, and moves by the sleep and the readings alone.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
    let clock = u128::from(first["clock_us"].as_u64().unwrap());
    assert!(clock <= now && now - clock < 600_000_000, "{first}");
    for what in ["slept_us", "elapsed_us"] {
        assert!((20_000..20_100).contains(&first[what].as_u64().unwrap()), "{what}: {first}");
    }

    let repeating = prober(Chance::Repeated(seeds)).await;
    for _ in 0..3 {
        assert_eq!(chance(&repeating).await, (first.clone(), Some(seeds), fuel));
    }
}

#[tokio::test]
async fn without_seeds_there_is_nothing_to_repeat_a_call_from() {
    let prober = Prober::load(&SANDBOX, limits(&[]), grants::<&str>(&[])).await.unwrap();
    let (first, seeds, _) = chance(&prober).await;
    assert_eq!(seeds, None);
    assert_ne!(first["random"], chance(&prober).await.0["random"]);
    let (_, receipt) = prober.try_steps(json!([])).await;
    let bill = cofferdam_agent::receipt::Receipt::to_json(&receipt);
    assert!(bill.get("seeds").is_none(), "{bill}");
}
