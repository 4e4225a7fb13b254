"""Lets a test in Python report that this machine cannot run it; tests/skip/skips compares the record with the list."""
import os


def record(test_set: str, test: str, reason: str) -> None:
    """Appends one line to the file that ISOTHERM_SKIPS names, if it names one."""
    path = os.environ.get("ISOTHERM_SKIPS")
    if path:
        fields = (" ".join(field.split()) for field in (test_set, test, reason))
        with open(path, "a", encoding="utf-8") as file:
            file.write("\t".join(fields) + "\n")
