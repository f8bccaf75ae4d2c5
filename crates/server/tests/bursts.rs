//! A tenant's burst: what it may do at once after a rest.

mod support;

use std::time::{Duration, Instant};

use serde_json::json;

use support::Host;

const RATE: f64 = 200.0;

/// When each of `count` reads was answered, seconds from the first question; after a rest of `rest`.
fn answered(host: &Host, count: usize, rest: Duration) -> Vec<f64> {
    let mut client = host.client("it", true);
    std::thread::sleep(rest);
    let begun = Instant::now();
    (0..count)
        .map(|at| {
            assert_eq!(client.read(at as u64 * 4096, 4096).expect("an answer").error, 0);
            begun.elapsed().as_secs_f64()
        })
        .collect()
}

/// Nothing beyond rate x (time + burst), and one bio to begin with and one that waited.
fn within(times: &[f64], burst: f64) {
    for (at, time) in times.iter().enumerate() {
        let allowed = RATE * (time + burst) + 2.0;
        assert!((at + 1) as f64 <= allowed, "{} reads in {time} s, allowed {allowed}", at + 1);
    }
}

#[test]
fn a_rested_tenant_gets_its_burst_and_then_its_limit() {
    let host = Host::start(
        "[[device]]\nname = 'disk'\nram = '16M'\n[[export]]\nname = 'it'\ndevice = 'disk'\nmax = 'riops=200'\nburst = '1s'\n",
    );
    let times = answered(&host, 400, Duration::from_millis(1100));
    within(&times, 1.0);
    // At the limit alone they would take 0.9 s.
    assert!(times[179] < 0.45, "180 reads after a rest took {} s", times[179]);
    assert!(times[399] > 0.9, "the other 200 came at the limit: {} s", times[399]);

    let set = json!({ "do": "set", "export": "it", "burst": "100ms" });
    assert_eq!(host.ctl(&set.to_string()), json!({ "ok": true }));
    let shown = host.ctl(&json!({ "do": "show" }).to_string());
    assert_eq!(shown["exports"][0]["burst_ns"], json!(100_000_000));
    assert_eq!(shown["exports"][0]["max"]["riops"], json!(200), "the limit stays");
    let times = answered(&host, 100, Duration::from_millis(1100));
    within(&times, 0.1);
    assert!(times[99] > 0.35, "80 of 100 came at the limit: {} s", times[99]);

    let wrong = host.ctl(&json!({ "do": "set", "export": "it", "burst": "1ms" }).to_string());
    assert!(wrong["error"].as_str().is_some_and(|text| text.contains("20ms to 3600s")), "{wrong}");
}
