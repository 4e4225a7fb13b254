"""Section `java`: Cross-Layer's Table 3 and figures 6 to 14 in form, on Java programs of our own, H2 and Lucene, part by part."""
from collections.abc import Iterator

import java_heap
import java_stacks
import java_tiers
from java_machines import DEFAULT_HOME
from java_sites import cold_sets, sites
from parts import Parts, of_section, run_parts
from table import Table
from tools import Tools

__all__ = ["DEFAULT_HOME", "PARTS", "run"]
PARTS: Parts = {"sites": sites, "cold-set": cold_sets, "guided": java_tiers.tables, "colours": java_heap.tables, "stacks": java_stacks.tables}


def run(tools: Tools, options, folder: str, say) -> Iterator[Table]:
    yield from run_parts("java", PARTS, of_section(PARTS, options) or list(PARTS), tools, options, folder, say)
