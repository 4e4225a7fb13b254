import java.util.Locale;

/** The measured phase of a program. Its time and the work done in a second go to standard error, where bench/run reads them. */
final class Phase {
    private final long begin = System.nanoTime();

    /** Ends the phase, in which this much work was done. */
    void end(long work) {
        double seconds = (System.nanoTime() - begin) / 1e9;
        System.err.printf(Locale.ROOT, "kernel_seconds %.4f%n", seconds);
        System.err.printf(Locale.ROOT, "work_per_second %.0f%n", work / seconds);
    }
}
