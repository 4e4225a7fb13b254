//! Reads and writes the `colour` lines of a plan for energy: for each colour (hot, cold) its tier, how many of the tier's memory devices
//! hold the data, and the bytes of one device.

use isotherm_model::colour::{Colour, ColourDevices, DEVICES_AT_MOST};
use isotherm_model::tier::{TierIndex, Tiers};
use isotherm_model::units::Bytes;

use super::line::{Line, PlanTextError};

/// The line of a colour.
pub(super) fn write(colour: &ColourDevices, name: impl Fn(TierIndex) -> String) -> String {
    format!(
        "colour {} {} devices {} device {}",
        colour.colour.word(),
        name(colour.tier),
        colour.devices,
        colour.device.exact()
    )
}

/// The colours, hot first, in any order of the lines.
pub(super) fn colours(lines: &[Line], tiers: &Tiers) -> Result<Vec<ColourDevices>, PlanTextError> {
    let mut colours = Vec::<ColourDevices>::new();
    for line in lines {
        let colour = colour(line, tiers)?;
        if colours.iter().any(|known| known.colour == colour.colour) {
            return line.wrong(format!("colour {} is given twice", colour.colour.word()));
        }
        if let Some(other) = colours.iter().find(|known| known.tier == colour.tier) {
            return line.wrong(format!(
                "colour {} has the tier of colour {}; a tier holds one colour, so that it tells the colour of a site",
                colour.colour.word(),
                other.colour.word()
            ));
        }
        colours.push(colour);
    }
    colours.sort_by_key(|colour| colour.colour);
    Ok(colours)
}

fn colour(line: &Line, tiers: &Tiers) -> Result<ColourDevices, PlanTextError> {
    let [_, colour, tier, ..] = line.words.as_slice() else {
        return line.wrong("a colour line is `colour NAME TIER devices NUMBER device SIZE`");
    };
    let Some(colour) = Colour::from_word(colour) else {
        return line.wrong(format!("unknown colour \"{colour}\"; known are hot, cold"));
    };
    let tier = line.tier(tiers, tier)?;
    let mut pairs = line.pairs(3)?;
    let devices = pairs.bounded("devices", DEVICES_AT_MOST)?;
    let device: Bytes = pairs.quantity("device")?;
    pairs.done()?;
    Ok(ColourDevices {
        colour,
        tier,
        devices,
        device,
    })
}
