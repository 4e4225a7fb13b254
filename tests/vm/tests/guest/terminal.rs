//! A pseudo-terminal for a program that draws, and the content of its screen.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

const ROWS: u16 = 40;
const COLUMNS: u16 = 120;

/// A program on a pseudo-terminal. It ends with the test, which on a failure prints the last screen.
pub(crate) struct Terminal {
    program: Child,
    keyboard: File,
    drawn: Arc<Mutex<vt100::Parser>>,
    reader: Option<JoinHandle<()>>,
}

impl Terminal {
    /// Starts a program whose standard input, output and errors are a terminal of 40 lines.
    pub(crate) fn start(mut command: Command) -> Self {
        let (own, of_program) = pair();
        let end = || of_program.try_clone().expect("another descriptor");
        let begun = command.env("TERM", "xterm").stdin(end()).stdout(end());
        let program = begun.stderr(end()).spawn().expect("the program starts");
        // Its descriptors: the program's end must be closed when the program has ended.
        drop(command);
        let keyboard = File::from(own);
        let mut output = keyboard.try_clone().expect("another descriptor");
        let drawn = Arc::new(Mutex::new(vt100::Parser::new(ROWS, COLUMNS, 0)));
        let draw = Arc::clone(&drawn);
        let read = move || {
            let mut bytes = [0; 4096];
            // A closed other end is an error here (EIO), and the end of the output.
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                let mut drawn = draw.lock().unwrap_or_else(PoisonError::into_inner);
                drawn.process(&bytes[..count]);
            }
        };
        Self {
            program,
            keyboard,
            drawn,
            reader: Some(std::thread::spawn(read)),
        }
    }

    /// The present screen, line by line.
    pub(crate) fn screen(&self) -> String {
        let drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        drawn.screen().contents()
    }

    /// Presses a key and waits for the program to end.
    pub(crate) fn ends_by(mut self, key: u8) -> ExitStatus {
        self.keyboard.write_all(&[key]).expect("a key");
        let status = self.program.wait().expect("a child");
        let reader = self.reader.take().expect("a reader");
        reader.join().expect("what was drawn is read");
        status
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
        if std::thread::panicking() {
            println!("the terminal shows:\n{}", self.screen());
        }
    }
}

/// Both ends of a pseudo-terminal: ours and the program's.
fn pair() -> (OwnedFd, File) {
    let own = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
    grantpt(&own).expect("its rights");
    unlockpt(&own).expect("unlocked");
    let size = Winsize {
        ws_row: ROWS,
        ws_col: COLUMNS,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&own, size).expect("its size");
    let name = ptsname(&own, Vec::new()).expect("its name");
    let name = name.to_str().expect("a path");
    let of_program = File::options().read(true).write(true).open(name);
    (own, of_program.expect("the other end"))
}
