//! `isotherm top` follows the daemon in the terminal, updated each epoch. Keys switch between its figures with the list of watched
//! processes, the heat of their memory, and a help; others sort, filter and scroll the list.

mod keys;
mod process_list;
mod screen;

use std::fs::File;
use std::io::IsTerminal;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use isotherm_report::watch_heat::HeatMap;
use isotherm_report::watch_status::Status;
use ratatui::crossterm::event::{poll, read};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::interrupt::Interrupt;
use crate::launch::end_as;
use isotherm_daemon::socket;
use keys::KeyCommand;
use process_list::ProcessList;
use screen::View;

/// The wait for a key before the next check for a new status.
const WAIT: Duration = Duration::from_millis(200);

/// Follows the daemon until `q`, Escape or Ctrl-C, or until a signal, whose exit status it returns. It restores the terminal.
///
/// # Errors
/// No daemon answers, it ended, it gave no heat, or there is no terminal.
pub(crate) fn run(socket: &Path) -> Result<Option<ExitStatus>> {
    if !std::io::stdout().is_terminal() {
        bail!(
            "`isotherm top` needs a terminal, and there is none; `isotherm status` prints the same once"
        );
    }
    let (send, news) = channel();
    let path = socket.to_owned();
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
    let result = follow(&mut terminal, first, &news, socket, &interrupt);
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
    // The keyboard that crossterm chooses.
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
    let mut list = ProcessList::default();
    loop {
        terminal
            .draw(|frame| screen::draw(frame, (&status, &heat), view, &mut list))
            .context("the terminal cannot be drawn on")?;
        if interrupt.status().is_some() {
            return Ok(());
        }
        let mut is_old = false;
        if poll(WAIT).context("the keyboard cannot be read")? {
            let event = read().context("the keyboard cannot be read")?;
            match KeyCommand::of(&event, list.is_typing()) {
                Some(KeyCommand::End) => return Ok(()),
                Some(KeyCommand::NextView) => (view, is_old) = (view.next(), true),
                Some(KeyCommand::Help) => view = view.help(),
                Some(command) => list.take(command),
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
        if is_old && matches!(view, View::Heat(_)) {
            heat = socket::ask(path)?;
        }
    }
}
