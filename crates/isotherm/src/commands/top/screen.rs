//! `draw` draws the screen of `isotherm top` in one `View`: the figures of the daemon (tiers, control groups, processes, moves, sources),
//! the heat by time and address, or the help.

use isotherm_model::source_kind::ProfilingMethod;
use isotherm_model::units::Bytes;
use isotherm_report::table::DataTable;
use isotherm_report::watch_heat::HeatMap;
use isotherm_report::watch_status::{GroupStatus, ProcessStatus, Status};
use isotherm_report::words::percent;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Gauge, Paragraph, Row, Table};

use super::keys::HELP;
use super::process_list::ProcessList;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    Figures,
    Heat(ProfilingMethod),
    Help,
}

impl View {
    /// The next view; `h` cycles through them.
    pub(super) const fn next(self) -> Self {
        match self {
            Self::Figures => Self::Heat(ProfilingMethod::TraceSamples),
            Self::Heat(ProfilingMethod::TraceSamples) => Self::Heat(ProfilingMethod::AccessedBits),
            Self::Heat(ProfilingMethod::AccessedBits) | Self::Help => Self::Figures,
        }
    }

    /// The help, and from there the figures.
    pub(super) const fn help(self) -> Self {
        match self {
            Self::Help => Self::Figures,
            Self::Figures | Self::Heat(_) => Self::Help,
        }
    }
}

pub(super) fn draw(
    frame: &mut Frame<'_>,
    (status, heat): (&Status, &HeatMap),
    view: View,
    list: &mut ProcessList,
) {
    match view {
        View::Figures => draw_figures(frame, status, list),
        View::Heat(method) => draw_heat(frame, heat, method),
        View::Help => frame.render_widget(
            Paragraph::new(HELP).block(Block::bordered().title("keys")),
            frame.area(),
        ),
    }
}

/// Draws the accesses by time and address.
fn draw_heat(frame: &mut Frame<'_>, heat: &HeatMap, method: ProfilingMethod) {
    let area = frame.area();
    // The lines above and below the map, and the one on keys.
    let lines = usize::from(area.height).saturating_sub(4);
    let text = heat.lines(method, usize::from(area.width), lines);
    frame.render_widget(Paragraph::new(text + "h: next view   q ends"), area);
}

/// The most control groups that are drawn; the rest of the screen is for processes.
const GROUPS_AT_MOST: usize = 8;

/// Characters of the columns of processes and of control groups.
const PROCESS_WIDTHS: [u16; 6] = [9, 24, 11, 8, 9, 40];
const GROUP_WIDTHS: [u16; 8] = [32, 9, 11, 11, 11, 11, 8, 9];

/// Draws everything: tiers, control groups, processes, moves and costs.
fn draw_figures(frame: &mut Frame<'_>, status: &Status, list: &mut ProcessList) {
    // The border and the heads around the rows; nothing where no group is named, or where the list has all groups.
    let groups = match status.groups.len() {
        0 => 0,
        _ if list.by_group() => 0,
        count => count.min(GROUPS_AT_MOST) as u16 + 3,
    };
    // The border around the lines; nothing where the slow tier is not swap.
    let paged_lines = status.paged_lines();
    let paged_height = match paged_lines.len() {
        0 => 0,
        count => count as u16 + 2,
    };
    let [head, fast, hits, shares, processes, moves, paged, sources] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(groups),
        Constraint::Min(4),
        Constraint::Length(4),
        Constraint::Length(paged_height),
        Constraint::Length(status.sources.len() as u16 + 3),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(heading(status)), head);
    bars(frame, [fast, hits], status);
    if groups > 0 {
        table(
            frame,
            shares,
            ("control groups", 0),
            &GroupStatus::table(&status.groups),
            GROUP_WIDTHS,
        );
    }
    draw_list(frame, processes, status, list);
    let block = Block::bordered().title("moves");
    frame.render_widget(Paragraph::new(status.moves()).block(block), moves);
    if !paged_lines.is_empty() {
        let block = Block::bordered().title("compressed memory");
        let lines = Paragraph::new(paged_lines.join("\n"));
        frame.render_widget(lines.block(block), paged);
    }
    table(
        frame,
        sources,
        ("sources", 0),
        &status.source_table(),
        [14, 12, 12, 8, 10, 60],
    );
}

/// Draws the processes, or their control groups, from the row on that the list is scrolled to.
fn draw_list(frame: &mut Frame<'_>, area: Rect, status: &Status, list: &mut ProcessList) {
    // The border and the heads are three lines.
    let visible = usize::from(area.height.saturating_sub(3));
    if list.by_group() {
        let groups = list.groups(&status.processes, &status.groups);
        let first = list.first_of(groups.len(), visible);
        let title = list.title(groups.len());
        let rows = GroupStatus::table(&groups);
        table(frame, area, (&title, first), &rows, GROUP_WIDTHS);
    } else {
        let processes = list.processes(&status.processes);
        let first = list.first_of(processes.len(), visible);
        let title = list.title(processes.len());
        let rows = ProcessStatus::table(&processes);
        table(frame, area, (&title, first), &rows, PROCESS_WIDTHS);
    }
}

/// The use of the fast tier, and the hit rate.
fn bars(frame: &mut Frame<'_>, [fast, hits]: [Rect; 2], status: &Status) {
    let (is, may) = (status.fast_bytes, status.capacity_bytes);
    let label = format!("fast {} of {}", Bytes(is), Bytes(may));
    bar(frame, fast, is as f64 / may.max(1) as f64, label);
    let known = status
        .hit_rate
        .map_or_else(|| "unknown".to_owned(), percent);
    let label = format!("hit rate {known}");
    bar(frame, hits, status.hit_rate.unwrap_or(0.0), label);
}

fn heading(status: &Status) -> Vec<Line<'static>> {
    let mode = if status.dry_run { "dry run" } else { "moving" };
    let tiers = status.tiers.iter().map(|tier| {
        format!(
            "{} {} ({} available)",
            tier.name,
            Bytes(tier.bytes),
            Bytes(tier.available_bytes)
        )
    });
    let tiers: Vec<String> = tiers.collect();
    let first = format!(
        "isotherm {mode} by {}   epoch {}   {} of a processor, {}   ?: keys   q ends",
        status.policy,
        status.epochs,
        percent(status.cpu_share),
        status.own_memory()
    );
    vec![
        Line::styled(first, Style::new().add_modifier(Modifier::BOLD)),
        Line::raw(tiers.join("   ")),
    ]
}

fn bar(frame: &mut Frame<'_>, area: Rect, share: f64, label: String) {
    // If the capacity has shrunk since, more is used than allowed.
    frame.render_widget(
        Gauge::default().ratio(share.clamp(0.0, 1.0)).label(label),
        area,
    );
}

fn table<T, const N: usize>(
    frame: &mut Frame<'_>,
    area: Rect,
    (title, first): (&str, usize),
    table: &DataTable<'_, T>,
    widths: [u16; N],
) {
    let head = Row::new(table.titles().map(|(title, _)| title));
    let head = head.style(Style::new().add_modifier(Modifier::BOLD));
    let table = Table::new(table.cells().skip(first).map(Row::new), widths)
        .header(head)
        .block(Block::bordered().title(title));
    frame.render_widget(table, area);
}

#[cfg(test)]
mod tests {
    use super::{View, draw, draw_heat};
    use crate::commands::top::keys::{KeyCommand, Scroll};
    use crate::commands::top::process_list::ProcessList;
    use isotherm_model::source_kind::ProfilingMethod;
    use isotherm_report::paged_status::PagedStatus;
    use isotherm_report::watch_heat::{HeatMap, HeatPlace, HeatTime};
    use isotherm_report::watch_status::{
        GroupStatus, ProcessStatus, SourceStatus, Status, TierStatus,
    };
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    const GOLDEN_GROUPS: &str = "
┌control groups──────────────────────────────────────────────────────────────────────────────────────────────┐
│control group                   processes resident    fast        floor       cap         priority hit rate │
│/web                            3         0 B         48 MiB      64 MiB      1 GiB       0.25     50 %     │
│/batch                          3         0 B         48 MiB      64 MiB      -           0.25     50 %     │
└────────────────────────────────────────────────────────────────────────────────────────────────────────────┘
";

    fn screen(status: &Status, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
        let (heat, mut list) = (HeatMap::default(), ProcessList::default());
        let drawn = terminal.draw(|frame| draw(frame, (status, &heat), View::Figures, &mut list));
        drawn.expect("draws");
        terminal.backend().to_string()
    }

    #[test]
    fn the_list_has_a_title_scrolls_and_has_groups() {
        let process = |pid: u32| ProcessStatus {
            pid,
            name: format!("worker{pid}"),
            control_group: "/batch".into(),
            resident_bytes: 1 << 30,
            ..ProcessStatus::default()
        };
        let status = Status {
            processes: (100..160).map(process).collect(),
            ..Status::default()
        };
        let mut list = ProcessList::default();
        let mut screen = |commands: &[KeyCommand]| {
            commands.iter().for_each(|command| list.take(*command));
            let mut terminal = Terminal::new(TestBackend::new(110, 24)).expect("a terminal");
            let heat = HeatMap::default();
            let drawn =
                terminal.draw(|frame| draw(frame, (&status, &heat), View::Figures, &mut list));
            drawn.expect("draws");
            terminal.backend().to_string()
        };
        let first = screen(&[]);
        assert!(
            first.contains("processes: 60, by resident") && first.contains("worker100"),
            "{first}"
        );
        let last = screen(&[KeyCommand::Scroll(Scroll::End)]);
        assert!(
            last.contains("worker159") && !last.contains("worker100"),
            "{last}"
        );
        let groups = screen(&[KeyCommand::ByGroup]);
        assert!(
            groups.contains("control groups: 1") && groups.contains("60 GiB"),
            "{groups}"
        );
    }

    #[test]
    fn the_help_names_the_keys() {
        assert_eq!(View::Figures.help(), View::Help);
        assert_eq!(View::Help.help(), View::Figures);
        let mut terminal = Terminal::new(TestBackend::new(110, 24)).expect("a terminal");
        let (status, heat) = (Status::default(), HeatMap::default());
        let mut list = ProcessList::default();
        let drawn = terminal.draw(|frame| draw(frame, (&status, &heat), View::Help, &mut list));
        drawn.expect("draws");
        let screen = terminal.backend().to_string();
        assert!(
            screen.contains("reverse the order") && screen.contains("scroll"),
            "{screen}"
        );
    }

    #[test]
    fn one_screen_shows_tiers_processes_moves_and_costs() {
        let status = Status {
            policy: "payback".into(),
            fast_bytes: 256 << 20,
            capacity_bytes: 1 << 30,
            hit_rate: Some(0.5),
            tiers: vec![TierStatus {
                name: "cxl".into(),
                ..TierStatus::default()
            }],
            processes: vec![ProcessStatus {
                pid: 4711,
                name: "redis-server".into(),
                ..ProcessStatus::default()
            }],
            sources: vec![SourceStatus {
                name: "timer".into(),
                usable: 987,
                ..SourceStatus::default()
            }],
            ..Status::default()
        };
        let screen = screen(&status, 110, 30);
        for part in [
            "payback",
            "256 MiB of 1 GiB",
            "hit rate 50 %",
            "cxl",
            "4711",
            "redis-server",
            "promoted",
            "timer",
            "987",
        ] {
            assert!(screen.contains(part), "{part:?} in\n{screen}");
        }
    }

    #[test]
    fn what_is_paged_out_and_what_it_costs_is_shown() {
        let paged = PagedStatus {
            out_bytes: 256 << 20,
            out_taken_bytes: 96 << 20,
            returned_bytes: 8 << 20,
            stalled_ns: 18_000_000,
            ..PagedStatus::default()
        };
        let status = Status {
            paged: Some(paged),
            ..Status::default()
        };
        let screen = screen(&status, 80, 24);
        for part in [
            "compressed memory",
            "256 MiB, which take 96 MiB: 160 MiB saved",
            "8 MiB came back in 18.0 ms of waiting",
            "time lost in the last epoch",
        ] {
            assert!(screen.contains(part), "{part:?} in\n{screen}");
        }
    }

    #[test]
    fn control_groups_have_a_table_where_something_is_said_of_them() {
        let group = |name: &str, cap_bytes| GroupStatus {
            control_group: name.into(),
            processes: 3,
            floor_bytes: 64 << 20,
            cap_bytes,
            priority: 0.25,
            fast_bytes: 48 << 20,
            hit_rate: Some(0.5),
            ..GroupStatus::default()
        };
        let status = Status {
            groups: vec![group("/web", Some(1 << 30)), group("/batch", None)],
            ..Status::default()
        };
        let drawn = screen(&status, 110, 24);
        let lines: Vec<&str> = drawn.lines().map(|line| line.trim_matches('"')).collect();
        let shown: Vec<&str> = lines[4..9].iter().map(|line| line.trim_end()).collect();
        let golden = GOLDEN_GROUPS.trim_matches('\n').lines();
        assert_eq!(shown, golden.collect::<Vec<_>>(), "\n{drawn}");
        let none = screen(&Status::default(), 110, 24);
        assert!(!none.contains("control groups"), "{none}");
        let many = Status {
            groups: vec![group("/web", None); 40],
            ..Status::default()
        };
        let drawn = screen(&many, 110, 30);
        assert_eq!(
            drawn.matches("/web").count(),
            8,
            "room is left for processes\n{drawn}"
        );
        assert!(
            drawn.contains("processes") && drawn.contains("moves"),
            "{drawn}"
        );
    }

    #[test]
    fn the_views_go_round_and_heat_is_drawn_on_any_screen() {
        let first = View::Figures.next();
        assert_eq!(first, View::Heat(ProfilingMethod::TraceSamples));
        assert_eq!(first.next().next(), View::Figures);
        let heat = HeatMap {
            columns: vec![HeatTime::default(); 3],
            rows: vec![HeatPlace {
                name: "redis".into(),
                ..HeatPlace::default()
            }],
            accessed_bits: vec![vec![0, 1, 99]],
            trace_samples: vec![vec![0; 3]],
            ..HeatMap::default()
        };
        for (width, height) in [(100, 20), (5, 2)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
            let drawn =
                terminal.draw(|frame| draw_heat(frame, &heat, ProfilingMethod::AccessedBits));
            drawn.expect("draws");
            let screen = terminal.backend().to_string();
            assert!(
                width < 100 || (screen.contains("redis") && screen.contains('█')),
                "{screen}"
            );
        }
    }

    #[test]
    fn a_tiny_terminal_and_more_memory_than_allowed_are_drawn_all_the_same() {
        let status = Status {
            fast_bytes: 2,
            capacity_bytes: 1,
            hit_rate: Some(7.0),
            ..Status::default()
        };
        assert!(!screen(&status, 10, 3).is_empty());
    }
}
