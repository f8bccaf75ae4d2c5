//! The screen as it is drawn, from two answers of a server.

use serde_json::json;

use super::sample::rows;
use super::screen::{Order, View, text};
use super::server::sample;

/// The answer to `show` of a server with two exports, `seconds` after its start.
fn shown(seconds: u64) -> serde_json::Value {
    let export = |name: &str, weight: u64, share: u64, max: &serde_json::Value, goal_ns: Option<u64>| {
        json!({
            "name": name, "device": "disk", "weight": weight, "due": share as f64 / 100.0, "max": max,
            "queued": 14, "in_device": 2, "device_requests": 150 * seconds * share / 100,
            "device_bytes": 150 * seconds * share / 100 * 65_536, "device_time_ns": seconds * share * 10_000_000,
            "wait_ns": 150 * seconds * share / 100 * 90_000_000, "service_ns": 150 * seconds * share / 100 * 6_500_000,
            "latencies": [[1_048_575, 100 * seconds], [134_217_727, 50 * seconds]], "goal_ns": goal_ns, "burst_ns": 500_000_000,
        })
    };
    json!({ "exports": [
        export("database", 300, 75, &json!({ "rbps": null, "wbps": null, "riops": null, "wiops": null }), Some(100_000_000)),
        export("back\u{1b}[2Jup", 100, 25, &json!({ "rbps": 52_428_800, "wbps": null, "riops": null, "wiops": 500 }), None),
    ] })
}

fn screen(order: Order) -> String {
    let before = sample(&shown(10), 0).expect("a server's");
    let now = sample(&shown(12), 2_000_000_000).expect("a server's");
    let mut rows = rows(&before, &now);
    order.sort(&mut rows);
    text(&View { place: "unix:/run/fairlift/ctl", seconds: 2.0, paused: false, order, rows: &rows })
}

#[test]
fn the_screen_shows_what_each_tenant_got() {
    insta::assert_snapshot!(screen(Order::Had));
}

#[test]
fn orders_go_round() {
    assert_eq!(Order::Name.step(1).step(3), Order::Name);
    let names = screen(Order::Name);
    assert!(names.find("back").expect("a row") < names.find("database").expect("a row"));
}

#[test]
fn what_is_no_servers_answer_is_refused() {
    for wrong in [json!({}), json!({ "exports": [{ "name": "x" }] }), json!({ "error": "no" })] {
        assert_eq!(sample(&wrong, 0), None);
    }
}
