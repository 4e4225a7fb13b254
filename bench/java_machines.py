"""The virtual machines of the section `java`: the installed one, and the one whose heap has colours."""
import os
import shutil

from machine import first_line
from measure import Problem
from tools import ROOT

DEFAULT_HOME = os.path.join(ROOT, "build", "java", "jdk")


class Machines:
    def __init__(self, options):
        self.home = os.path.abspath(options.java_home)

    @property
    def installed(self) -> str:
        """The `java` of the PATH, which has no patch."""
        java = shutil.which("java")
        if not java:
            raise Problem("java is not installed (apt-get install openjdk-17-jdk-headless)")
        return java

    @property
    def has_coloured(self) -> bool:
        return os.path.isfile(self.coloured)

    @property
    def coloured(self) -> str:
        """The `java` whose heap can have colours."""
        return os.path.join(self.home, "bin", "java")

    def check_coloured(self) -> None:
        if not self.has_coloured:
            raise Problem(f"there is no JDK with a coloured heap at {self.home}: `make java-heap` builds it, and --java-home names another one")

    @property
    def to_record(self) -> str:
        """A plan finds the virtual machine's own sites again where the same one was recorded."""
        return self.coloured if self.has_coloured else self.installed

    def note(self) -> str:
        return f"Virtual machine: {first_line([self.to_record, '-version'])}, {self.to_record}."
