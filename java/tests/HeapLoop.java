import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;

/**
 * A loop that allocates objects of 24 bytes or small arrays, of which each EVERY-th is cold.
 *
 * <pre>java HeapLoop KIND COUNT EVERY ROUNDS</pre>
 *
 * KIND is class, array (both cold by their class), site, bytes or objects (cold by their site). EVERY is a power of two; 0 makes no cold
 * object. Each round allocates COUNT objects, keeps the last 1024, and prints the processor time of the thread in nanoseconds for each
 * object, and the bytes that the virtual machine counts for the thread: {@code 12.5 2400000}.
 */
public final class HeapLoop {
    static final class Hot {
        long value;
    }

    static final class Cold {
        long value;
    }

    static final class Plain {
        long value;
    }

    private static final Object[] KEPT = new Object[1024];

    static Object coldSite() {
        return new Plain();
    }

    static Object coldBytes() {
        return new byte[24];
    }

    static Object coldObjects() {
        return new Object[4];
    }

    private static void hot(int begin, int end) {
        for (int i = begin; i < end; i++) {
            KEPT[i & 1023] = new Hot();
        }
    }

    private static void classes(int begin, int end, int mask) {
        for (int i = begin; i < end; i++) {
            KEPT[i & 1023] = (i & mask) == 0 ? new Cold() : new Hot();
        }
    }

    private static void arrays(int begin, int end, int mask) {
        for (int i = begin; i < end; i++) {
            KEPT[i & 1023] = (i & mask) == 0 ? new Cold[4] : new Hot();
        }
    }

    private static void sites(int begin, int end, int mask) {
        for (int i = begin; i < end; i++) {
            KEPT[i & 1023] = (i & mask) == 0 ? coldSite() : new Hot();
        }
    }

    private static void bytes(int begin, int end, int mask) {
        for (int i = begin; i < end; i++) {
            KEPT[i & 1023] = (i & mask) == 0 ? coldBytes() : new Hot();
        }
    }

    private static void objects(int begin, int end, int mask) {
        for (int i = begin; i < end; i++) {
            KEPT[i & 1023] = (i & mask) == 0 ? coldObjects() : new Hot();
        }
    }

    /** Short calls, so that the code of the server compiler is soon used. */
    private static void round(String kind, int count, int every) {
        int step = 1000;
        for (int i = 0; i < count; i += step) {
            int end = Math.min(i + step, count);
            if (every == 0) {
                hot(i, end);
                continue;
            }
            switch (kind) {
                case "class" -> classes(i, end, every - 1);
                case "array" -> arrays(i, end, every - 1);
                case "site" -> sites(i, end, every - 1);
                case "bytes" -> bytes(i, end, every - 1);
                case "objects" -> objects(i, end, every - 1);
                default -> throw new IllegalArgumentException(kind);
            }
        }
    }

    public static void main(String[] words) {
        int count = Integer.parseInt(words[1]);
        int every = Integer.parseInt(words[2]);
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long thread = Thread.currentThread().getId();
        for (int i = Integer.parseInt(words[3]); i > 0; i--) {
            long bytes = threads.getThreadAllocatedBytes(thread);
            long start = threads.getCurrentThreadCpuTime();
            round(words[0], count, every);
            long time = threads.getCurrentThreadCpuTime() - start;
            bytes = threads.getThreadAllocatedBytes(thread) - bytes;
            System.out.println((double) time / count + " " + bytes);
        }
        System.gc();
    }
}
