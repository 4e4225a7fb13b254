//! A policy that balances the tiers gets their loads, and the room that it leaves in fast memory stays free.

use isotherm_model::port::EpochPolicy;
use isotherm_model::tier_loads::TierLoads;
use isotherm_policy::epoch::LoadBalance;

use super::{Machine, UnitStep, config, limits, unit};

fn loads(fast: f64, slow: f64) -> TierLoads {
    TierLoads {
        latencies_ns: [fast, slow],
        demand: 1_000_000_000,
    }
}

#[test]
fn units_leave_fast_memory_that_is_the_slower_and_return_where_it_is_the_faster() {
    let units: Vec<_> = (0..8).map(|number| unit(7, number)).collect();
    let mut machine = Machine::with(units.iter().copied());
    machine.fast.values_mut().for_each(|fast| *fast = true);
    let hot: Vec<_> = units.iter().map(|unit| (*unit, 9)).collect();
    let make = || -> Box<dyn EpochPolicy> { Box::new(LoadBalance::default()) };
    let mut step = UnitStep::new(config(false), Box::new(make));
    let epochs = [
        (Some(loads(300.0, 100.0)), 6),
        (Some(loads(300.0, 100.0)), 6),
        (None, 6),
        (Some(loads(105.0, 100.0)), 6),
        (Some(loads(100.0, 300.0)), 7),
    ];
    for (epoch, (loads, fast)) in (0..).zip(epochs) {
        step.set_loads(loads);
        let seen = machine.observation(epoch, 8, &hot);
        step.run(&seen, &limits(), &mut machine);
        assert_eq!(machine.fast_units().len(), fast, "epoch {epoch}");
    }
}
