//! Parses and makes the names of session files: `<pid>.<n>`, where n counts the process images that had this pid.

use isotherm_model::batch::Process;

/// The process image of a session file's name.
#[must_use]
pub fn parse_name(name: &str) -> Option<Process> {
    let (pid, image) = name.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (digits(pid) && digits(image)).then_some(())?;
    Some(Process {
        pid: pid.parse().ok()?,
        image: image.parse().ok()?,
    })
}

/// The name of a process image's session file.
#[must_use]
pub fn file_name(process: Process) -> String {
    format!("{}.{}", process.pid, process.image)
}
