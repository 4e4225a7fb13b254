//! [`Serial`] is the host's end of the serial line on which a guest receives commands and sends answers.

use std::io::{ErrorKind, Read, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Longest first line of an answer; a longer line is not an answer.
const LINE_AT_MOST: usize = 4096;

/// A line with a timeout for every read.
#[derive(Debug)]
pub struct Serial {
    input: ChildStdin,
    chunks: Receiver<Vec<u8>>,
    /// Received bytes that were not yet read.
    pending: Vec<u8>,
}

impl Serial {
    /// Takes the emulator's standard input and output, to which it connects the line.
    #[must_use]
    pub fn new(input: ChildStdin, mut output: ChildStdout) -> Self {
        let (sender, chunks) = channel();
        // A pipe has no timeout; a thread that ends with the pipe, and a channel, have one.
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            loop {
                match output.read(&mut buffer) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Ok(0) | Err(_) => return,
                    Ok(bytes) => {
                        if sender.send(buffer[..bytes].to_vec()).is_err() {
                            return;
                        }
                    }
                }
            }
        });
        Self {
            input,
            chunks,
            pending: Vec::new(),
        }
    }

    /// Sends one line.
    ///
    /// # Errors
    /// The guest is gone.
    pub fn send(&mut self, line: &str) -> Result<()> {
        let sent = writeln!(self.input, "{line}").and_then(|()| self.input.flush());
        sent.context("the guest is gone: it no longer takes commands")
    }

    /// The next line, without its end.
    ///
    /// # Errors
    /// The guest is gone, or sent none until the deadline.
    pub fn line(&mut self, deadline: Instant) -> Result<String> {
        loop {
            if let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.pending.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            if self.pending.len() > LINE_AT_MOST {
                bail!(
                    "the guest sent {} bytes that are no answer",
                    self.pending.len()
                );
            }
            self.receive(deadline)?;
        }
    }

    /// The next bytes, as many as requested.
    ///
    /// # Errors
    /// The guest is gone, or did not send as many until the deadline.
    pub fn bytes(&mut self, count: usize, deadline: Instant) -> Result<Vec<u8>> {
        while self.pending.len() < count {
            self.receive(deadline)?;
        }
        Ok(self.pending.drain(..count).collect())
    }

    fn receive(&mut self, deadline: Instant) -> Result<()> {
        let left = deadline.saturating_duration_since(Instant::now());
        match self.chunks.recv_timeout(left.max(Duration::from_millis(1))) {
            Ok(chunk) => self.pending.extend(chunk),
            Err(RecvTimeoutError::Disconnected) => bail!("the guest ended"),
            Err(RecvTimeoutError::Timeout) => bail!("the guest does not answer"),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    /// A shell script in place of a guest.
    fn guest(script: &str) -> (Child, Serial) {
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let serial = Serial::new(child.stdin.take().unwrap(), child.stdout.take().unwrap());
        (child, serial)
    }

    fn in_a_minute() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[test]
    fn a_line_and_the_bytes_after_it_are_told_apart() {
        let (mut child, mut serial) = guest(r#"read -r line; printf 'got %s\nab\ncd' "$line""#);
        serial.send("this").unwrap();
        assert_eq!(serial.line(in_a_minute()).unwrap(), "got this");
        assert_eq!(serial.bytes(5, in_a_minute()).unwrap(), b"ab\ncd");
        let error = serial.line(in_a_minute()).unwrap_err();
        assert_eq!(error.to_string(), "the guest ended");
        child.wait().unwrap();
    }

    #[test]
    fn a_guest_that_says_nothing_is_given_up() {
        let (mut child, mut serial) = guest("read -r line");
        let error = serial.line(Instant::now()).unwrap_err();
        assert_eq!(error.to_string(), "the guest does not answer");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn noise_without_an_end_is_no_answer() {
        let (mut child, mut serial) = guest("head -c 100000 /dev/zero");
        let error = serial.line(in_a_minute()).unwrap_err().to_string();
        assert!(error.contains("bytes that are no answer"), "{error}");
        child.wait().unwrap();
    }
}
