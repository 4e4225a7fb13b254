//! `KeyCommand` is the command of a key of `isotherm top`, also while a filter is typed; `HELP` lists the keys for the help screen.

use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

pub(super) const HELP: &str = "\
< >          sort by the column to the left or to the right
r            reverse the order
/            show only what contains the text that follows: program, control group or number; Enter keeps it, Escape ends it
g            control groups in place of processes, and back
Up Down      scroll by a line; Page Up, Page Down by a screen; Home, End to the ends
h            heat by time and address: of samples, of accessed bits, and back
?            this help, and back
q            end
";

/// How far the list scrolls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scroll {
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyCommand {
    End,
    NextView,
    Help,
    SortLeft,
    SortRight,
    Reverse,
    ByGroup,
    /// Begin the text of the filter.
    Filter,
    /// Add a character to the filter.
    Typed(char),
    /// Remove the last character of the filter.
    Erase,
    /// Keep the filter.
    Accept,
    /// Remove the filter.
    Clear,
    Scroll(Scroll),
}

impl KeyCommand {
    /// The command of an event; while the text of the filter is typed, letters belong to it.
    pub(super) fn of(event: &Event, is_typing: bool) -> Option<Self> {
        let Event::Key(key) = event else { return None };
        if key.kind != KeyEventKind::Press {
            return None;
        }
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return Some(Self::End);
        }
        match is_typing {
            true => Self::of_typing(key),
            false => Self::of_list(key),
        }
    }

    fn of_typing(key: &KeyEvent) -> Option<Self> {
        match key.code {
            KeyCode::Char(typed) => Some(Self::Typed(typed)),
            KeyCode::Backspace => Some(Self::Erase),
            KeyCode::Enter => Some(Self::Accept),
            KeyCode::Esc => Some(Self::Clear),
            _ => None,
        }
    }

    fn of_list(key: &KeyEvent) -> Option<Self> {
        let scroll = |scroll| Some(Self::Scroll(scroll));
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => Some(Self::End),
            KeyCode::Char('h') => Some(Self::NextView),
            KeyCode::Char('?') | KeyCode::F(1) => Some(Self::Help),
            KeyCode::Char('<') | KeyCode::Left => Some(Self::SortLeft),
            KeyCode::Char('>') | KeyCode::Right => Some(Self::SortRight),
            KeyCode::Char('r') => Some(Self::Reverse),
            KeyCode::Char('g') => Some(Self::ByGroup),
            KeyCode::Char('/') => Some(Self::Filter),
            KeyCode::Up => scroll(Scroll::Up),
            KeyCode::Down => scroll(Scroll::Down),
            KeyCode::PageUp => scroll(Scroll::PageUp),
            KeyCode::PageDown => scroll(Scroll::PageDown),
            KeyCode::Home => scroll(Scroll::Home),
            KeyCode::End => scroll(Scroll::End),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::KeyCommand;
    use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};

    fn key(code: KeyCode, modifiers: KeyModifiers) -> Event {
        Event::Key(KeyEvent::new(code, modifiers))
    }

    #[test]
    fn letters_are_commands_except_while_a_filter_is_typed() {
        let q = key(KeyCode::Char('q'), KeyModifiers::NONE);
        assert_eq!(KeyCommand::of(&q, false), Some(KeyCommand::End));
        assert_eq!(KeyCommand::of(&q, true), Some(KeyCommand::Typed('q')));
        let escape = key(KeyCode::Esc, KeyModifiers::NONE);
        assert_eq!(KeyCommand::of(&escape, false), Some(KeyCommand::End));
        assert_eq!(KeyCommand::of(&escape, true), Some(KeyCommand::Clear));
        let interrupt = key(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(KeyCommand::of(&interrupt, true), Some(KeyCommand::End));
    }
}
