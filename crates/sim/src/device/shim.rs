use super::*;
#[derive(Clone, Debug)]
pub struct DeviceSpec { name: String }
#[derive(Debug)]
struct Nothing { limits: Limits, q: Vec<(u64,u32)>, busy: u64, last: u64 }
impl Device for Nothing {
    fn limits(&self) -> &Limits { &self.limits }
    fn submit(&mut self, c: Command, now: u64) { let d = c.sector.abs_diff(self.last); self.last = c.sector + u64::from(c.sectors); let at = self.q.last().map_or(now, |q| q.0); self.q.push((at.max(now)+100_000 + if d > 0 { 4_000_000 + d / 100 } else { 0 }, c.tag)); }
    fn next_event(&self) -> Option<u64> { self.q.iter().map(|q| q.0).min() }
    fn advance(&mut self, now: u64, done: &mut Vec<Completion>) { self.q.retain(|q| if q.0 <= now { done.push(Completion{tag:q.1, at_ns:q.0}); false } else {true}); }
    fn busy_ns(&self) -> u64 { self.busy }
}
pub struct SpecError { pub origin: String, pub line: Option<usize>, pub message: String }
impl std::fmt::Display for SpecError { fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { write!(f, "{}: {}", self.origin, self.message) } }
pub struct Preset { pub name: &'static str, pub description: &'static str, pub text: &'static str }
pub const PRESETS: &[Preset] = &[Preset { name: "sata7200-2009", description: "shim", text: "" }, Preset { name: "null", description: "shim", text: "" }];
static L: Limits = Limits{sectors: 1<<31, queue_depth: 31, rotational: true, write_cache: true, fua: false, max_sectors: 1024, max_segments: 128};
impl DeviceSpec {
    pub fn load(n: &str) -> Result<DeviceSpec, SpecError> { if n.starts_with("sata7200") || n == "null" { Ok(DeviceSpec{name:n.into()}) } else { Err(SpecError { origin: n.into(), line: None, message: "no device of that name and no such file (presets: ..)".into() }) } }
    pub fn parse(_: &str, n: &str) -> Result<DeviceSpec, SpecError> { Ok(DeviceSpec{name:n.into()}) }
    pub fn build(&self, _: u64) -> Box<dyn Device> { Box::new(Nothing{limits: L, q: vec![], busy: 0, last: 0}) }
    pub fn name(&self) -> &str { &self.name }
    pub fn description(&self) -> &str { "shim" }
    pub fn model(&self) -> &'static str { "disk" }
    pub fn limits(&self) -> &Limits { &L }
    pub fn describe(&self) -> String { "shim\n".into() }
}
