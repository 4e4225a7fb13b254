//! [`DramChip`] holds the currents, timings and sizes of a DRAM chip: the parameters of the power model ([`DramRank`](super::DramRank)).
//! The constants are four chips (DDR4, DDR5, LPDDR4 and HBM2), with the figures of data sheets as public programs quote them; those of HBM2
//! are of a simulator, which names no data sheet.
//!
//! The currents have the names that JEDEC gives them, IDD0 to IDD6N, and are drawn from VDD. A data
//! sheet prints the maximum current of its kind of chip; measured chips draw less. The results of
//! the model are therefore comparisons between placements, not meter readings. The supply of the
//! word lines (VPP) and the termination on the bus are left out.

use isotherm_model::units::Bytes;

/// A kind of DRAM chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DramChip {
    /// Name of the chip.
    pub name: &'static str,
    /// Capacity of the chip.
    pub capacity: Bytes,
    /// Bytes of a row, the page that an activation opens; 1 KiB for 8 data pins (JEDEC JESD79-4, JESD79-5).
    pub row: Bytes,
    /// VDD in millivolts.
    pub millivolts: u32,
    /// IDD0, one bank opened and closed repeatedly, in microamperes, as all currents here.
    pub idd0: u32,
    /// IDD2N, precharge standby.
    pub idd2n: u32,
    /// IDD2P, precharge power-down.
    pub idd2p: u32,
    /// IDD3N, active standby with all banks open.
    pub idd3n: u32,
    /// IDD4R, continuous burst reads, all banks open.
    pub idd4r: u32,
    /// IDD4W, continuous burst writes, all banks open.
    pub idd4w: u32,
    /// IDD6N, self-refresh at normal temperature; includes its refresh current.
    pub idd6n: u32,
    /// Average additional current of refresh in every other state.
    pub refresh: u32,
    /// Banks: all are open in IDD3N, one in IDD0.
    pub banks: u32,
    /// tRC, the time from one opening of a row of a bank to the next, in picoseconds.
    pub row_cycle: u32,
    /// tRAS, the part of tRC in which the row is open, in picoseconds.
    pub row_open: u32,
    /// Bytes a second over the chip's own pins while a burst runs.
    pub burst_bandwidth: u64,
    /// tXP, the delay of an access to a chip in power-down, in picoseconds.
    pub power_down_exit: u32,
    /// tXS, the delay of the first command to a chip in self-refresh, in picoseconds. A read may
    /// wait longer, until the clock is locked.
    pub self_refresh_exit: u32,
}

/// DDR4-2400, 8 Gbit, 8 data pins: Micron MT40A1G8.
///
/// Data sheet: Micron, "8Gb: x4, x8, x16 DDR4 SDRAM" (`8gb_ddr4_dram.pdf`, Rev. N 06/18), table
/// 148, die revision B, column DDR4-2400. The sheet itself was not available; its figures come from
/// public programs that quote it. gem5 (`DDR4_2400_8x8`) and DRAMsim3 (`DDR4_8Gb_x8_2400.ini`)
/// agree in IDD0 48, IDD2N 34, IDD2P 25, IDD3N 43, IDD4R 135 and IDD4W 123 mA; for self-refresh the
/// first has 30 and the second 31 mA, and 30 is used. IDD5R (distributed refresh), 53 mA, comes
/// from one quotation; refreshing adds IDD5R - IDD2N. VDD, tRAS 32 ns, tRP 14.16 ns, tXP 6 ns and
/// tRFC 350 ns are those of gem5; tRC = tRAS + tRP is the 46.16 ns that Micron's module sheets
/// print for DDR4-2400, and tXS = tRFC + 10 ns.
pub const DDR4_2400_8GBIT: DramChip = DramChip {
    name: "DDR4-2400 8 Gbit x8 (Micron MT40A1G8)",
    capacity: Bytes(1 << 30),
    row: Bytes(1 << 10),
    millivolts: 1_200,
    idd0: 48_000,
    idd2n: 34_000,
    idd2p: 25_000,
    idd3n: 43_000,
    idd4r: 135_000,
    idd4w: 123_000,
    idd6n: 30_000,
    refresh: 53_000 - 34_000,
    banks: 16,
    row_cycle: 46_160,
    row_open: 32_000,
    burst_bandwidth: 2_400_000_000,
    power_down_exit: 6_000,
    self_refresh_exit: 360_000,
};

/// DDR5-4800, 16 Gbit, 8 data pins: Micron MT60B2G8, die revision A.
///
/// Data sheet: Micron, "16Gb DDR5 SDRAM Addendum, Die Revision A" (`16gb_ddr5_sdram_diereva.pdf`,
/// Rev. D 02/2023), table 6, column DDR5-4800. The sheet itself was not available; its figures come
/// from public programs that quote it. Three agree in IDD2N 92, IDD2P 88, IDD3N 142 and IDD5B 277
/// mA. They differ in IDD0, IDD4R and IDD4W, which depend on the width. The program that names
/// pages and eight pins has 103, 377 and 349 mA, which are used; another has 103, 318 and 345, and
/// gem5 (`DDR5_4400_4x8`) 122, 530 and 479. IDD6N 102 mA is from gem5 alone. Refreshing adds
/// (IDD5B - IDD2N) * tRFC / tREFI with tRFC 295 ns and tREFI 3900 ns. tRAS 32 ns, tRP 39 clocks of 0.416
/// ns, tXP 7.5 ns, tXS = tRFC.
///
/// By these figures self-refresh saves no energy over power-down on this die (102 against 88 + 14
/// mA).
pub const DDR5_4800_16GBIT: DramChip = DramChip {
    name: "DDR5-4800 16 Gbit x8 (Micron MT60B2G8)",
    capacity: Bytes(2 << 30),
    row: Bytes(1 << 10),
    millivolts: 1_100,
    idd0: 103_000,
    idd2n: 92_000,
    idd2p: 88_000,
    idd3n: 142_000,
    idd4r: 377_000,
    idd4w: 349_000,
    idd6n: 102_000,
    refresh: (277_000 - 92_000) * 295 / 3_900,
    banks: 32,
    row_cycle: 32_000 + 39 * 416,
    row_open: 32_000,
    burst_bandwidth: 4_800_000_000,
    power_down_exit: 7_500,
    self_refresh_exit: 295_000,
};

/// LPDDR4-3200, one channel of 16 data pins, 6 Gbit: Micron.
///
/// Data sheet quoted by DRAMPower (`MICRON_6Gb_LPDDR4-3200_32bit_A.json`, whose memory id says `16bit`). The chip draws from two rails,
/// VDD1 of 1.8 V and VDD2 of 1.1 V. Here both are one current at 1.1 V of the same power: IDD2 + IDD1 * 1.8 / 1.1. IDD0 3.5 and 45 mA,
/// IDD2N 2 and 27, IDD2P 1.2 and 3, IDD3N 2.25 and 30, IDD4R 2.25 and 275, IDD4W 2.25 and 210, IDD6 0.3 and 0.5, and IDD5AB, the average
/// with refresh of all banks, 2.5 and 30. The supply of the pins (VDDQ) is left out, as termination is of DDR4. A clock is 0.625 ns: tRC 97,
/// tRAS 68, tXP 12, tXSR 458 clocks.
pub const LPDDR4_3200_6GBIT: DramChip = DramChip {
    name: "LPDDR4-3200 6 Gbit x16 (Micron)",
    capacity: Bytes(768 << 20),
    row: Bytes(2 << 10),
    millivolts: 1_100,
    idd0: 45_000 + 3_500 * 18 / 11,
    idd2n: 27_000 + 2_000 * 18 / 11,
    idd2p: 3_000 + 1_200 * 18 / 11,
    idd3n: 30_000 + 2_250 * 18 / 11,
    idd4r: 275_000 + 2_250 * 18 / 11,
    idd4w: 210_000 + 2_250 * 18 / 11,
    idd6n: 500 + 300 * 18 / 11,
    refresh: 3_000 + 500 * 18 / 11,
    banks: 8,
    row_cycle: 97 * 625,
    row_open: 68 * 625,
    burst_bandwidth: 6_400_000_000,
    power_down_exit: 12 * 625,
    self_refresh_exit: 458 * 625,
};

/// HBM2, one channel of 128 data pins, 8 Gbit, at 2 GT/s.
///
/// Figures of DRAMsim3 (`HBM2_8Gb_x128.ini`), which names no data sheet: VDD 1.2 V, IDD0 65, IDD2N 40, IDD2P 28, IDD3N 55, IDD4R 390, IDD4W 500,
/// IDD6 31 mA. Refreshing adds (IDD5AB - IDD2N) * tRFC / tREFI with 250 mA, 260 ns and 3900 ns. A clock is 1 ns: tRAS 34, tRP 14, tXP 8, tXS 268
/// clocks.
pub const HBM2_8GBIT: DramChip = DramChip {
    name: "HBM2 8 Gbit x128 (a channel)",
    capacity: Bytes(1 << 30),
    row: Bytes(2 << 10),
    millivolts: 1_200,
    idd0: 65_000,
    idd2n: 40_000,
    idd2p: 28_000,
    idd3n: 55_000,
    idd4r: 390_000,
    idd4w: 500_000,
    idd6n: 31_000,
    refresh: (250_000 - 40_000) * 260 / 3_900,
    banks: 16,
    row_cycle: 48_000,
    row_open: 34_000,
    burst_bandwidth: 32_000_000_000,
    power_down_exit: 8_000,
    self_refresh_exit: 268_000,
};
