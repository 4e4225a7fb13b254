//! [`Fractional`] is the site policy that shows the fractional bound as a plan: by hotness, whole sites up to the one that the bound
//! splits; this and all colder ones are left out. The bound itself is [`bound`](crate::bound()).

use isotherm_model::plan::Item;
use isotherm_model::port::{Choice, SitePolicy};
use isotherm_model::units::Bytes;

use crate::standing::by_hotness;

/// Whole sites by hotness, up to the one that the fractional bound splits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fractional;

impl SitePolicy for Fractional {
    fn name(&self) -> &'static str {
        "fractional"
    }

    fn fills(&self) -> bool {
        true
    }

    fn choose(&self, items: &[Item], capacity: Bytes) -> Vec<Choice> {
        let mut room = Some(capacity);
        by_hotness(items)
            .into_iter()
            .map(|item| {
                let weight = items[item].weight;
                let (taken, reason) = match room {
                    Some(left) if weight <= left => {
                        room = Some(left.saturating_sub(weight));
                        (true, "taken: whole within the bound".to_owned())
                    }
                    Some(left) => {
                        room = None;
                        let reason = format!(
                            "left out: the bound splits it, {left} of its {weight} would fit; only \
                             whole sites are placed"
                        );
                        (false, reason)
                    }
                    None => (
                        false,
                        "left out: colder than the site the bound splits".to_owned(),
                    ),
                };
                Choice::new(item, taken, reason)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Fractional;
    use crate::properties::{items, taken};
    use isotherm_model::units::Bytes;

    #[test]
    fn nothing_colder_than_the_split_site_is_taken_even_if_it_fits() {
        let sites = items(&[(9, 3), (8, 3), (1, 1)]);
        assert_eq!(taken(&Fractional, &sites, Bytes(5)), [0]);
    }
}
