//! `ProcessList` is the list of `isotherm top`: which processes or control groups it shows, in which order, from which row on.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use isotherm_model::variant_words;
use isotherm_report::watch_status::{GroupStatus, ProcessStatus};

use super::keys::{KeyCommand, Scroll};

variant_words! {
    /// A column that orders the processes, from left to right as the table shows them.
    #[derive(Clone, Copy, Debug, Default)]
    enum SortColumn {
        Process = "process",
        Program = "program",
        #[default]
        Resident = "resident",
        Fast = "fast",
        HitRate = "hit rate",
        ControlGroup = "control group",
    }
}

impl SortColumn {
    /// Texts and process numbers ascend, amounts descend; a process without a hit rate comes last.
    fn order(self, a: &ProcessStatus, b: &ProcessStatus) -> Ordering {
        match self {
            Self::Process => a.pid.cmp(&b.pid),
            Self::Program => a.name.cmp(&b.name),
            Self::Resident => b.resident_bytes.cmp(&a.resident_bytes),
            Self::Fast => b.fast_share().total_cmp(&a.fast_share()),
            Self::HitRate => {
                let [a, b] = [a, b].map(|process| process.hit_rate.unwrap_or(-1.0));
                b.total_cmp(&a)
            }
            Self::ControlGroup => a.control_group.cmp(&b.control_group),
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct ProcessList {
    sort: SortColumn,
    is_reversed: bool,
    filter: String,
    is_typing: bool,
    by_group: bool,
    /// The first row that is shown.
    first: usize,
    /// Rows that were shown last; a screen is one at least.
    visible: usize,
}

impl ProcessList {
    /// Whether letters belong to the filter now.
    pub(super) const fn is_typing(&self) -> bool {
        self.is_typing
    }

    /// Whether control groups are shown in place of processes.
    pub(super) const fn by_group(&self) -> bool {
        self.by_group
    }

    /// Takes a command; those of the whole screen change nothing here.
    pub(super) fn take(&mut self, command: KeyCommand) {
        match command {
            KeyCommand::SortLeft => self.sort_by(-1),
            KeyCommand::SortRight => self.sort_by(1),
            KeyCommand::Reverse => self.is_reversed = !self.is_reversed,
            KeyCommand::ByGroup => (self.by_group, self.first) = (!self.by_group, 0),
            KeyCommand::Filter => self.is_typing = true,
            KeyCommand::Typed(typed) => {
                self.filter.push(typed);
                self.first = 0;
            }
            KeyCommand::Erase => {
                self.filter.pop();
            }
            KeyCommand::Accept => self.is_typing = false,
            KeyCommand::Clear => {
                self.filter.clear();
                self.is_typing = false;
            }
            KeyCommand::Scroll(scroll) => self.scroll(scroll),
            KeyCommand::End | KeyCommand::NextView | KeyCommand::Help => {}
        }
    }

    fn sort_by(&mut self, step: isize) {
        let next = (self.sort as usize).saturating_add_signed(step);
        self.sort = SortColumn::ALL.get(next).copied().unwrap_or(self.sort);
        (self.is_reversed, self.first) = (false, 0);
    }

    fn scroll(&mut self, scroll: Scroll) {
        let screen = self.visible.max(1);
        self.first = match scroll {
            Scroll::Up => self.first.saturating_sub(1),
            Scroll::Down => self.first.saturating_add(1),
            Scroll::PageUp => self.first.saturating_sub(screen),
            Scroll::PageDown => self.first.saturating_add(screen),
            Scroll::Home => 0,
            Scroll::End => usize::MAX,
        };
    }

    /// The processes that contain the filter's text, in order.
    pub(super) fn processes(&self, processes: &[ProcessStatus]) -> Vec<ProcessStatus> {
        let is_shown = |process: &&ProcessStatus| {
            process.name.contains(&self.filter)
                || process.control_group.contains(&self.filter)
                || process.pid.to_string().contains(&self.filter)
        };
        let mut shown: Vec<ProcessStatus> = processes.iter().filter(is_shown).cloned().collect();
        shown.sort_by(|a, b| self.sort.order(a, b));
        if self.is_reversed {
            shown.reverse();
        }
        shown
    }

    /// The control groups of these processes, that with most resident memory first, with the limits that the configuration gives them.
    pub(super) fn groups(
        &self,
        processes: &[ProcessStatus],
        configured: &[GroupStatus],
    ) -> Vec<GroupStatus> {
        let mut groups = BTreeMap::<String, GroupStatus>::new();
        for process in self.processes(processes) {
            let name = process.control_group.clone();
            let group = groups.entry(name.clone()).or_insert_with(|| {
                let limits = configured.iter().find(|group| group.control_group == name);
                GroupStatus {
                    control_group: name,
                    processes: 0,
                    resident_bytes: 0,
                    fast_bytes: 0,
                    ..limits.cloned().unwrap_or(GroupStatus {
                        priority: 1.0,
                        ..GroupStatus::default()
                    })
                }
            });
            group.processes += 1;
            group.resident_bytes = group.resident_bytes.saturating_add(process.resident_bytes);
            group.fast_bytes = group.fast_bytes.saturating_add(process.fast_bytes);
        }
        let mut groups: Vec<GroupStatus> = groups.into_values().collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.resident_bytes));
        if self.is_reversed {
            groups.reverse();
        }
        groups
    }

    /// The first row to show of `rows`, of which `visible` fit on the screen; scrolling ends at the last ones.
    pub(super) fn first_of(&mut self, rows: usize, visible: usize) -> usize {
        self.visible = visible;
        self.first = self.first.min(rows.saturating_sub(visible));
        self.first
    }

    /// The title of the list: how many rows it has, from which on it shows them, their order and the filter.
    pub(super) fn title(&self, rows: usize) -> String {
        let (what, by) = match self.by_group {
            true => ("control groups", SortColumn::Resident),
            false => ("processes", self.sort),
        };
        let by = by.word();
        let reversed = if self.is_reversed { ", reversed" } else { "" };
        let filter = match (self.is_typing, self.filter.is_empty()) {
            (true, _) => format!("   /{}_", self.filter),
            (false, false) => format!("   /{}", self.filter),
            (false, true) => String::new(),
        };
        let from = match self.first {
            0 => String::new(),
            first => format!(" from {}", first + 1),
        };
        format!("{what}: {rows}{from}, by {by}{reversed}{filter}")
    }
}

#[cfg(test)]
mod tests {
    use super::ProcessList;
    use crate::commands::top::keys::{KeyCommand, Scroll};
    use isotherm_report::watch_status::{GroupStatus, ProcessStatus};

    fn process(
        pid: u32,
        name: &str,
        group: &str,
        resident: u64,
        hit_rate: Option<f64>,
    ) -> ProcessStatus {
        ProcessStatus {
            pid,
            name: name.into(),
            control_group: group.into(),
            resident_bytes: resident,
            fast_bytes: resident / 2,
            hit_rate,
            ..ProcessStatus::default()
        }
    }

    fn some() -> Vec<ProcessStatus> {
        vec![
            process(1, "init", "/", 10, None),
            process(20, "redis", "/web", 300, Some(0.5)),
            process(30, "nginx", "/web", 200, Some(0.9)),
        ]
    }

    fn pids(list: &ProcessList) -> Vec<u32> {
        let shown = list.processes(&some());
        shown.iter().map(|process| process.pid).collect()
    }

    #[test]
    fn a_column_orders_the_processes_and_stays_at_the_ends() {
        let mut list = ProcessList::default();
        assert_eq!(pids(&list), [20, 30, 1], "largest first");
        list.take(KeyCommand::Reverse);
        assert_eq!(pids(&list), [1, 30, 20]);
        list.take(KeyCommand::SortLeft);
        assert_eq!(pids(&list), [1, 30, 20], "by program");
        for _ in 0..9 {
            list.take(KeyCommand::SortLeft);
        }
        assert_eq!(pids(&list), [1, 20, 30], "by number");
        for _ in 0..4 {
            list.take(KeyCommand::SortRight);
        }
        assert_eq!(pids(&list), [30, 20, 1], "by hit rate, unknown last");
    }

    #[test]
    fn a_filter_takes_names_groups_and_numbers() {
        let mut list = ProcessList::default();
        list.take(KeyCommand::Filter);
        assert!(list.is_typing());
        "web"
            .chars()
            .for_each(|typed| list.take(KeyCommand::Typed(typed)));
        assert_eq!(pids(&list), [20, 30]);
        list.take(KeyCommand::Accept);
        assert!(!list.is_typing() && list.title(2).ends_with("/web"));
        list.take(KeyCommand::Clear);
        assert_eq!(pids(&list).len(), 3);
        "30".chars()
            .for_each(|typed| list.take(KeyCommand::Typed(typed)));
        assert_eq!(pids(&list), [30]);
        list.take(KeyCommand::Erase);
        assert_eq!(pids(&list), [30], "3");
    }

    #[test]
    fn groups_are_sums_with_the_limits_of_the_configuration() {
        let web = GroupStatus {
            control_group: "/web".into(),
            processes: 7,
            floor_bytes: 64,
            ..GroupStatus::default()
        };
        let groups = ProcessList::default().groups(&some(), &[web]);
        let sums: Vec<(&str, u64, u64, u64, u64)> = groups
            .iter()
            .map(|it| {
                (
                    it.control_group.as_str(),
                    it.processes,
                    it.resident_bytes,
                    it.fast_bytes,
                    it.floor_bytes,
                )
            })
            .collect();
        assert_eq!(sums, [("/web", 2, 500, 250, 64), ("/", 1, 10, 5, 0)]);
    }

    #[test]
    fn scrolling_ends_at_the_first_and_the_last_row() {
        let mut list = ProcessList::default();
        assert_eq!(list.first_of(30, 10), 0);
        list.take(KeyCommand::Scroll(Scroll::PageDown));
        assert_eq!(list.first_of(30, 10), 10);
        list.take(KeyCommand::Scroll(Scroll::End));
        assert_eq!(list.first_of(30, 10), 20);
        list.take(KeyCommand::Scroll(Scroll::Up));
        assert_eq!(list.first_of(30, 10), 19);
        // Processes ended meanwhile.
        assert_eq!(list.first_of(5, 10), 0);
        list.take(KeyCommand::Scroll(Scroll::Up));
        assert_eq!(list.first_of(30, 10), 0);
    }
}
