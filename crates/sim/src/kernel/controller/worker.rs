//! The thread of a controller: submits the bios it held, from an io context of its own, and waits for request slots like any task.

use fairlift_core::IoPrio;

use crate::anatomy::Cause;
use crate::anatomy::Why;
use crate::engine::{Simulation, Sys};

/// Start it, if there is a controller.
pub(crate) fn start(simulation: &mut Simulation) {
    let Some(name) = simulation.with_machine(|m| m.block.controller_thread()) else { return };
    let task = simulation.spawn_daemon(IoPrio::DEFAULT, serve);
    simulation.with_machine(|m| {
        m.set_name(task, name);
        m.block.set_controller_thread(task);
    });
}

async fn serve(sys: Sys) {
    loop {
        let tickets = sys
            .wait(Why::Because(Cause::Unasked), |machine, _| {
                let now = machine.now();
                let tickets = machine.block.conduct(now);
                (!tickets.is_empty()).then_some(tickets)
            })
            .await;
        for ticket in tickets {
            sys.submit_held(ticket).await;
        }
        sys.unplug();
    }
}
