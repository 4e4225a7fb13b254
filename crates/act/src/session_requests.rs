//! [`request`] writes a request into the session file of a process image for the writers of requests, and returns the fate of their action:
//! requested, or why not.

use isotherm_model::batch::Process;
use isotherm_model::outcome::Fate;
use isotherm_session::{OpenFiles, SessionError, SessionFile};

/// Has `write` write a request into the session file of a process image; `left` is the fate of a request that finds no place there.
pub(crate) fn request(
    files: &mut OpenFiles,
    process: Process,
    left: Fate,
    write: impl FnOnce(&mut SessionFile) -> Result<bool, SessionError>,
) -> Fate {
    match files.of(process).map(write) {
        Ok(Ok(true)) => Fate::Requested,
        Ok(Ok(false)) => left,
        Ok(Err(error)) => {
            Fate::Denied(format!("the session file cannot be written: {error}").into())
        }
        Err(error) => {
            let name = format!("process {}", process.pid);
            Fate::NotAttempted(format!("{name} has no session file: {error}").into())
        }
    }
}
