//! Reads and writes plans as text: for people to read, compare and edit, and for a guided run to follow.
//!
//! ```text
//! isotherm-plan 1
//! # comments run from `#` to the end of the line
//! policy thermos
//! value accesses  # time waiting for memory
//! counted time
//! weight peak-rss
//! depth 4
//! command "./bfs" "graph.bin"
//! tier fast emulated-fast capacity 512MiB placement preferred  # emulated: ...
//! tier slow emulated-slow capacity 8GiB placement preferred period 100ms access 10us hot 13us migrate 50us
//! default slow
//! standing planned 912 first-touch 401 bound 950 total 1200
//! expected all-slow 2.310 first-touch 1.920 planned 1.210 bound 1.180  # times over all fast
//! site 00000000000000ab fast value 512 weight 128MiB caller 00000000000000cd  # main (bfs.cc:7) -- taken: it fits
//! part 00000000000000ab slow from 64MiB to 128MiB value 9 weight 64MiB
//! site 00000000000000ef slow value 90 weight 640MiB caller 00000000000000cd  # insert (bfs.cc:21) -- split: the first 96 MiB ...
//! leading 00000000000000ef fast bytes 96MiB value 13
//! site shared slow value 3 weight 1028KiB  # small and rare sites -- left out: ...
//! small 00000000000000cd 0000000000000011 0000000000000012
//! code 0 /home/me/bfs build-id 0123abcd
//! frame 00000000000000ab 0 0x1234 function main file bfs.cc line 7 column 12 function-line 3
//! ```
//!
//! A line is a list of words. A word with characters other than letters, digits and `._:,+/-` stands in double quotes. Numbers are exact:
//! sizes and times in the largest unit that divides them. Tiers come fastest first. Sites come hottest first regardless of their tier, so
//! moving one to another tier changes one word of one line. Text after `#` on a tier line is its reason. On a site line it is the label
//! and, after ` -- `, the policy's reason. All of it may be omitted.
//!
//! `counted` names the unit of the values (`accesses`, `misses`, `latency`, `time`, `touches`, `samples`, `bytes`; `unknown` if it is
//! omitted). The comment after `value` gives the same in words.
//!
//! `caller ID` names the site's innermost frame alone, `caller ID+` a frame that was also seen in contexts which no `site` line names, and
//! `caller none` marks a site that no caller distinguishes (a mapping, a call that the compiler named). Where all contexts of a caller go
//! to one tier a guided run need not distinguish them, which is faster; if a line names no caller, the run distinguishes all of them.
//!
//! `expected`, which may be omitted, holds the times that the program is expected to take in each placement, over its time with all data
//! fast.
//!
//! `part SITE TIER from SIZE to SIZE` lines place a range of each data object of a site elsewhere than the site's own line says: of each
//! allocation of 64 KiB and more, each mapping and each variable, in bytes from its start, on pages of 4 KiB. Parts of one site have no
//! byte in common. Value and weight of a part are included in those of its site.
//! `leading SITE TIER bytes SIZE value NUMBER` lines send the memory that a site allocates first, up to that size in each process,
//! elsewhere than the site's own line says: as much as a tier has room for, of a site of many small objects, whose places do not hold for
//! another run. A site has one such line or parts.
//!
//! `colour NAME TIER devices NUMBER device SIZE` lines, which only plans for energy have, give each colour (`hot`, `cold`) a tier of its
//! own, and say how many of its devices hold the data, and how many bytes each holds at most. The tier of a site is then its colour.
//!
//! `default` is the tier of data that no line knows: the fastest, where it is placed as first touch would place it, fast
//! while there is room and then slow.
//!
//! `small CALLER SITE ...` lists sites that were seen and allocated too little for memory of their own: they follow `site
//! shared`, and the default where there is no such line. `CALLER` is as behind `caller`, `unknown` where no caller is said. A
//! plan without such lines cannot tell them from sites that were never seen; all of these go to `default`.
//!
//! `code` numbers a module, and `frame` lines are a site's callers, innermost first: a return address as an ELF
//! virtual address of the module, and what is known of it. A guided run finds the sites of another build of the program
//! by them; without them it finds those of the very build only.
//!
//! `tier NAME nodes 0,1` names NUMA nodes; `latency 85ns`, `read-bandwidth 1000` and `write-bandwidth 1000` (bytes a second) may follow,
//! and `loaded 1000:85ns,9000:130ns`, latencies under load. `bandwidth-limit 5GiB/s`, `fast-bandwidth-limit 10GiB/s`, `machine NAME` and
//! `machine-fast 16GiB` may follow the costs of an emulated slow tier. The reader checks everything and reports the line of an error.
//! Numbers out of range are errors too: a depth above 8, a cost of the emulated pair above 1s or a period above 1h, a latency above 1s,
//! more than 1,000,000,000,000,000 bytes a second, a node above 1023, a value above 2^62, a weight above 128PiB.
//!
//! Modules are listed bottom-up: each uses only those above it.
#![forbid(unsafe_code)]

mod words;
mod line;
mod limits;
mod frames;
mod small;
mod parts;
mod leading;
mod colours;
mod write;
mod read;
#[cfg(test)]
mod tests;

pub use line::PlanTextError;
pub use read::read;
pub use write::write;
