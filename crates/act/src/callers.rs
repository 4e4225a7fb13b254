//! [`site_name`] computes, from the frames of a recorded site, the name (hash) that the runtime gives to the site, and [`caller`] the name
//! of a heap site's direct caller, the innermost frame. Plans and configurations hold both: where all contexts of a caller go to one tier,
//! the runtime needs no more than the caller. Where the frames do not yield a heap site's own name (some are missing, say), its caller
//! is unknown.

use isotherm_abi::hash::{SiteHashKind, SiteHasher};
use isotherm_abi::named_data::site_of_name;
use isotherm_model::plan::Caller;
use isotherm_model::site::{CallerId, Frame, Site, SiteId, SiteKind};

/// Most bytes of a module's name that are hashed
/// ([`isotherm_abi::session::ModuleRecord::build_id`]).
const MODULE_BYTES: usize = 32;

/// The caller of a site. Unknown if the frames do not yield the site's name (truncated frames, a
/// module without a name), so that they prove nothing.
#[must_use]
pub fn caller(site: &Site) -> Caller {
    match site.kind {
        SiteKind::Mapping
        | SiteKind::Described
        | SiteKind::Static
        | SiteKind::Named
        | SiteKind::Java
        | SiteKind::Region => Caller::None,
        SiteKind::Heap => direct_caller(site).map_or(Caller::Unknown, |id| Caller::Direct {
            id,
            has_others: false,
        }),
        SiteKind::Shared | SiteKind::Unattributed => Caller::Unknown,
    }
}

/// The direct caller of a heap site, if its frames name it.
#[must_use]
pub fn direct_caller(site: &Site) -> Option<CallerId> {
    if site.kind != SiteKind::Heap || site_name(SiteKind::Heap, &site.frames)? != site.id {
        return None;
    }
    caller_name(&site.frames)
}

/// The direct caller that a heap site with these frames has.
#[must_use]
pub fn caller_name(frames: &[Frame]) -> Option<CallerId> {
    site_name(SiteKind::Heap, frames.get(..1)?).map(|name| CallerId(name.0))
}

/// The name that the runtime gives a site with these frames; `None` if a build-id is not a hexadecimal number, and
/// for kinds of site that are not named by frames.
#[must_use]
pub fn site_name(kind: SiteKind, frames: &[Frame]) -> Option<SiteId> {
    let mut hasher = SiteHasher::new(match kind {
        SiteKind::Heap => SiteHashKind::Heap,
        SiteKind::Mapping => SiteHashKind::Mapping,
        SiteKind::Static => SiteHashKind::Static,
        SiteKind::Named => return name_of(frames),
        SiteKind::Described
        | SiteKind::Java
        | SiteKind::Region
        | SiteKind::Shared
        | SiteKind::Unattributed => return None,
    });
    for frame in frames {
        hasher = match &frame.build_id {
            Some(build_id) => hasher.frame(&bytes(build_id)?, frame.offset),
            None => {
                let file = frame.module.rsplit('/').next().unwrap_or_default();
                let file = file.as_bytes();
                hasher.frame(&file[..file.len().min(MODULE_BYTES)], frame.offset)
            }
        };
    }
    Some(SiteId(hasher.finish()))
}

/// The name of a site of data that the program names itself: the function of its only frame is the data's name.
fn name_of(frames: &[Frame]) -> Option<SiteId> {
    match frames {
        [frame] if frame.module.is_empty() => {
            let name = frame.function.as_ref()?;
            Some(SiteId(site_of_name(name.as_bytes())))
        }
        _ => None,
    }
}

/// The bytes of a hexadecimal text.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| (*byte as char).to_digit(16);
    let pair = |pair: &[u8]| match pair {
        [high, low] => Some((digit(high)? << 4 | digit(low)?) as u8),
        _ => None,
    };
    digits.as_bytes().chunks(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::{caller, direct_caller};
    use isotherm_abi::hash::{SiteHashKind, SiteHasher};
    use isotherm_abi::python_code::PythonCode;
    use isotherm_model::plan::Caller;
    use isotherm_model::site::{CallerId, Frame, Site, SiteId, SiteKind};

    fn frame(module: &str, build_id: Option<&str>, offset: u64) -> Frame {
        Frame {
            module: module.into(),
            build_id: build_id.map(Into::into),
            offset,
            ..Frame::default()
        }
    }

    fn site(frames: Vec<Frame>, id: u64) -> Site {
        Site {
            frames: frames.into(),
            ..Site::new(SiteId(id), SiteKind::Heap)
        }
    }

    #[test]
    fn sites_with_the_same_innermost_frame_have_the_same_caller() {
        let inner = SiteHasher::new(SiteHashKind::Heap).frame(&[0xab, 0x01], 0x10);
        let expected = Some(CallerId(inner.finish()));
        let build_id = Some("ab01");
        for outer in [7, 8] {
            let frames = vec![frame("/a", build_id, 0x10), frame("/lib/b.so", None, outer)];
            let id = inner.frame(b"b.so", outer).finish();
            assert_eq!(direct_caller(&site(frames, id)), expected);
        }
    }

    #[test]
    fn python_functions_are_named_as_the_runtime_names_them() {
        let code = PythonCode {
            file: b"/home/me/graph_of_a_very_large_web_with_a_long_name.py",
            function: b"Graph.load",
            first_line: 40,
        };
        let inner = SiteHasher::new(SiteHashKind::Heap).frame(&[0xab, 0x01], 0x10);
        let id = inner.frame(code.module_name(), code.offset(43)).finish();
        let path = std::str::from_utf8(code.file).expect("a path");
        let frames = vec![
            frame("/a", Some("ab01"), 0x10),
            frame(path, None, code.offset(43)),
        ];
        let caller = Some(CallerId(inner.finish()));
        assert_eq!(direct_caller(&site(frames, id)), caller);
    }

    #[test]
    fn frames_that_do_not_give_the_site_its_name_tell_nothing() {
        let frames = vec![frame("/a", Some("ab"), 1)];
        assert_eq!(direct_caller(&site(frames.clone(), 5)), None);
        assert_eq!(
            direct_caller(&site(vec![frame("/a", Some("x1"), 1)], 5)),
            None
        );
        assert_eq!(direct_caller(&site(Vec::new(), 5)), None);
        let id = SiteHasher::new(SiteHashKind::Heap)
            .frame(&[0xab], 1)
            .finish();
        let mut site = site(frames, id);
        assert!(direct_caller(&site).is_some());
        for kind in [SiteKind::Mapping, SiteKind::Described, SiteKind::Static] {
            site.kind = kind;
            assert_eq!((direct_caller(&site), caller(&site)), (None, Caller::None));
        }
    }
}
