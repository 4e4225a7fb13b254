//! `isotherm top`: the state of the daemon on one screen, updated each epoch.

use std::fs::File;
use std::io::IsTerminal;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use isotherm_model::source_kind::ProfilingMethod;
use isotherm_model::units::Bytes;
use isotherm_report::table::DataTable;
use isotherm_report::watch_heat::HeatMap;
use isotherm_report::watch_status::Status;
use isotherm_report::words::percent;
use ratatui::Frame;
use ratatui::crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers, poll, read};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Gauge, Paragraph, Row, Table};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::cli::TopArgs;
use crate::interrupt::Interrupt;
use crate::launch::end_as;
use isotherm_daemon::socket;

/// The wait for a key before the next check for a new status.
const WAIT: Duration = Duration::from_millis(200);

/// The view on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum View {
    Figures,
    Heat(ProfilingMethod),
}

impl View {
    /// The next view; `h` cycles through them.
    const fn next(self) -> Self {
        match self {
            Self::Figures => Self::Heat(ProfilingMethod::TraceSamples),
            Self::Heat(ProfilingMethod::TraceSamples) => Self::Heat(ProfilingMethod::AccessedBits),
            Self::Heat(ProfilingMethod::AccessedBits) => Self::Figures,
        }
    }
}

/// Follows the daemon until `q`, Escape or Ctrl-C, or until the daemon ends; or until the signal that is
/// returned, which finds the terminal as it was.
///
/// # Errors
/// No daemon answers, or there is no terminal.
pub(crate) fn run(args: &TopArgs) -> Result<Option<ExitStatus>> {
    if !std::io::stdout().is_terminal() {
        bail!(
            "`isotherm top` needs a terminal, and there is none; `isotherm status` prints the same once"
        );
    }
    let (send, news) = channel();
    let path = args.socket.clone();
    let ended =
        std::thread::spawn(move || socket::follow(&path, |status| send.send(status).is_ok()));
    let Ok(first) = news.recv() else {
        let ended = ended
            .join()
            .unwrap_or_else(|_| bail!("the reader of the socket failed"));
        return ended.map(|()| None);
    };
    let interrupt = Interrupt::catch(&[SIGTERM, SIGHUP, SIGINT, SIGQUIT])?;
    end_with_the_terminal()?;
    let mut terminal = ratatui::try_init().context("the terminal cannot be drawn on")?;
    let result = follow(&mut terminal, first, &news, &args.socket, &interrupt);
    // Where the terminal is gone there is nothing to put in order.
    let _ = ratatui::try_restore();
    // After a hang-up drawing fails, which is then not an error.
    match interrupt.status() {
        Some(status) => Ok(Some(status)),
        None => result.map(|()| None),
    }
}

/// Starts a thread that ends this process as SIGHUP does when the terminal hangs up. Whether a signal arrives depends on the
/// leader of the session, and crossterm reads the end of its input in an endless loop.
///
/// # Errors
/// There is no terminal to read keys from, or no thread.
fn end_with_the_terminal() -> Result<()> {
    // As crossterm chooses it.
    let stdin = std::io::stdin();
    let keyboard = match stdin.is_terminal() {
        true => stdin.as_fd().try_clone_to_owned(),
        false => File::open("/dev/tty").map(OwnedFd::from),
    };
    let keyboard = keyboard.context("there is no terminal to read keys from")?;
    let wait = move || {
        // No event is requested: poll always reports a hang-up.
        let mut watched = [PollFd::new(&keyboard, PollFlags::empty())];
        while rustix::event::poll(&mut watched, None) == Err(Errno::INTR) {}
        if watched[0]
            .revents()
            .intersects(PollFlags::HUP | PollFlags::ERR)
        {
            end_as(ExitStatus::from_raw(SIGHUP));
        }
    };
    let thread = std::thread::Builder::new().name("terminal".to_owned());
    thread
        .spawn(wait)
        .context("no thread to watch the terminal")?;
    Ok(())
}

fn follow(
    terminal: &mut ratatui::DefaultTerminal,
    first: Status,
    news: &Receiver<Status>,
    path: &Path,
    interrupt: &Interrupt,
) -> Result<()> {
    let (mut status, mut view, mut heat) = (first, View::Figures, HeatMap::default());
    loop {
        terminal
            .draw(|frame| match view {
                View::Figures => draw(frame, &status),
                View::Heat(method) => draw_heat(frame, &heat, method),
            })
            .context("the terminal cannot be drawn on")?;
        if interrupt.status().is_some() {
            return Ok(());
        }
        let mut is_old = false;
        if poll(WAIT).context("the keyboard cannot be read")? {
            match KeyCommand::of(&read().context("the keyboard cannot be read")?) {
                Some(KeyCommand::End) => return Ok(()),
                Some(KeyCommand::NextView) => (view, is_old) = (view.next(), true),
                None => {}
            }
        }
        loop {
            match news.try_recv() {
                Ok(newer) => (status, is_old) = (newer, true),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => bail!("the daemon has ended"),
            }
        }
        if is_old && view != View::Figures {
            heat = socket::ask(path)?;
        }
    }
}

/// The command of a key.
enum KeyCommand {
    End,
    NextView,
}

impl KeyCommand {
    fn of(event: &Event) -> Option<Self> {
        let Event::Key(key) = event else { return None };
        if key.kind != KeyEventKind::Press {
            return None;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => Some(Self::End),
            KeyCode::Char('c') if control => Some(Self::End),
            KeyCode::Char('h') => Some(Self::NextView),
            _ => None,
        }
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

/// Draws everything: tiers, control groups, processes, moves and costs.
fn draw(frame: &mut Frame<'_>, status: &Status) {
    // The border and the heads around the rows; nothing where no group is named.
    let groups = match status.groups.len() {
        0 => 0,
        count => count.min(GROUPS_AT_MOST) as u16 + 3,
    };
    let [head, fast, hits, shares, processes, moves, sources] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(groups),
        Constraint::Min(4),
        Constraint::Length(4),
        Constraint::Length(status.sources.len() as u16 + 3),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(heading(status)), head);
    bars(frame, [fast, hits], status);
    if groups > 0 {
        table(
            frame,
            shares,
            "control groups",
            &status.group_table(),
            [32, 9, 11, 11, 11, 11, 8, 9],
        );
    }
    table(
        frame,
        processes,
        "processes",
        &status.process_table(),
        [9, 24, 11, 8, 9, 40],
    );
    let block = Block::bordered().title("moves");
    frame.render_widget(Paragraph::new(status.moves()).block(block), moves);
    table(
        frame,
        sources,
        "sources",
        &status.source_table(),
        [14, 12, 12, 8, 10, 60],
    );
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
        "isotherm {mode} by {}   epoch {}   {} of a processor, {}   h: heat   q ends",
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
    title: &'static str,
    table: &DataTable<'_, T>,
    widths: [u16; N],
) {
    let head = Row::new(table.titles().map(|(title, _)| title));
    let head = head.style(Style::new().add_modifier(Modifier::BOLD));
    let table = Table::new(table.cells().map(Row::new), widths)
        .header(head)
        .block(Block::bordered().title(title));
    frame.render_widget(table, area);
}

#[cfg(test)]
mod tests {
    use super::{View, draw, draw_heat};
    use isotherm_model::source_kind::ProfilingMethod;
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
        terminal.draw(|frame| draw(frame, status)).expect("draws");
        terminal.backend().to_string()
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
