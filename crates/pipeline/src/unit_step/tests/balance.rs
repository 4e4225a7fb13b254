//! Tests a policy that balances the tiers: it gets their loads, and the room that it leaves in fast memory stays free.

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

fn step() -> UnitStep {
    let make = || -> Box<dyn EpochPolicy> { Box::new(LoadBalance::default()) };
    UnitStep::new(config(false), Box::new(make))
}

#[test]
fn units_leave_fast_memory_that_is_the_slower_and_return_where_it_is_the_faster() {
    let units: Vec<_> = (0..8).map(|number| unit(7, number)).collect();
    let mut machine = Machine::with(units.iter().copied());
    machine.fast.values_mut().for_each(|fast| *fast = true);
    let hot: Vec<_> = units.iter().map(|unit| (*unit, 9)).collect();
    let mut step = step();
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

#[test]
fn epochs_of_few_samples_count_together_and_those_of_a_program_that_ended_do_not() {
    let units: Vec<_> = (0..8).map(|number| unit(7, number)).collect();
    let other = unit(9, 0);
    let mut machine = Machine::with(units.iter().copied().chain([other]));
    machine.fast.values_mut().for_each(|fast| *fast = true);
    let mut step = step();
    let hot: Vec<_> = units.iter().map(|unit| (*unit, 1)).collect();
    // The first epoch is that of the other program, and no source saw an access in the third.
    let epochs = [
        (vec![(other, 15)], 9),
        (hot.clone(), 8),
        (Vec::new(), 8),
        (hot.clone(), 8),
        (hot, 6),
    ];
    for (epoch, (hits, fast)) in (0..).zip(epochs) {
        step.set_loads(Some(loads(300.0, 100.0)));
        let seen = machine.observation(epoch, 9, &hits);
        step.run(&seen, &limits(), &mut machine);
        assert_eq!(machine.fast_units().len(), fast, "epoch {epoch}");
        machine.fast.remove(&other);
    }
}
