use super::*;
#[derive(Clone, Debug)]
pub struct DeviceSpec { name: String }
#[derive(Debug)]
struct Nothing { limits: Limits, q: Vec<(u64,u32)>, busy: u64 }
impl Device for Nothing {
    fn limits(&self) -> &Limits { &self.limits }
    fn submit(&mut self, c: Command, now: u64) { self.q.push((now+10_000, c.tag)); }
    fn next_event(&self) -> Option<u64> { self.q.iter().map(|q| q.0).min() }
    fn advance(&mut self, now: u64, done: &mut Vec<Completion>) { self.q.retain(|q| if q.0 <= now { done.push(Completion{tag:q.1, at_ns:q.0}); false } else {true}); }
    fn busy_ns(&self) -> u64 { self.busy }
}
impl DeviceSpec {
    pub fn load(n: &str) -> Result<DeviceSpec, String> { Ok(DeviceSpec{name:n.into()}) }
    pub fn build(&self, _: u64) -> Box<dyn Device> { Box::new(Nothing{limits: Limits{sectors: 1<<31, queue_depth: 31, rotational: true, write_cache: true, fua: false, max_sectors: 1024, max_segments: 128}, q: vec![], busy: 0}) }
    pub fn name(&self) -> &str { &self.name }
}
