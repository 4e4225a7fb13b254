import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.util.Locale;

/** The measured phase of a program. Its figures go to standard error, where bench/run reads them. */
final class Phase {
    private final long begin = System.nanoTime();

    /** Seconds in which the collector let the program wait, since its start. */
    private static double collecting() {
        long milliseconds = 0;
        for (GarbageCollectorMXBean collector : ManagementFactory.getGarbageCollectorMXBeans()) {
            milliseconds += collector.getCollectionTime();
        }
        return milliseconds / 1e3;
    }

    /** Ends the phase, in which this much work was done. */
    void end(long work) {
        double seconds = (System.nanoTime() - begin) / 1e9;
        print("kernel_seconds", seconds);
        print("work_per_second", work / seconds);
        print("gc_seconds", collecting());
    }

    private static void print(String name, double value) {
        System.err.println(String.format(Locale.ROOT, "%s %.4f", name, value));
    }
}
