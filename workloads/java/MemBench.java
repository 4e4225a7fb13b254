import java.lang.management.ManagementFactory;
import java.util.Random;

/**
 * MemBench of the Cross-Layer paper (section 6.1): hot and cold objects, each with one integer, made in random order and stored in one
 * array. Threads pass over their parts of the array and write to the hot objects only, in random order.
 *
 * <pre>java MemBench [--hot MIB] [--cold MIB] [--threads N] [--passes N] [--delay NS] [--seed N]</pre>
 *
 * Prints the sum of what was written; the time, the writes in a second and the time of collections go to standard error.
 */
public final class MemBench {
    /** Written in each pass. */
    static final class HotObject {
        int value;
    }

    /** Written once, as it is made. */
    static final class ColdObject {
        int value;
    }

    /** Bytes of an object with one integer: a header of 12 bytes and the integer. */
    private static final int OBJECT_BYTES = 16;

    private static int option(String[] words, String name, int otherwise) {
        for (int i = 0; i + 1 < words.length; i += 2) {
            if (words[i].equals(name)) {
                return Integer.parseInt(words[i + 1]);
            }
        }
        return otherwise;
    }

    static Object makeHot(int value) {
        HotObject made = new HotObject();
        made.value = value;
        return made;
    }

    static Object makeCold(int value) {
        ColdObject made = new ColdObject();
        made.value = value;
        return made;
    }

    /** All objects, of both types in random order. */
    static Object[] make(int hot, int cold, Random random) {
        Object[] objects = new Object[hot + cold];
        for (int i = 0; i < objects.length; i++) {
            int left = objects.length - i;
            boolean isHot = random.nextInt(left) < hot;
            objects[i] = isHot ? makeHot(i) : makeCold(i);
            hot -= isHot ? 1 : 0;
        }
        return objects;
    }

    /** The hot objects of a part of the array, shuffled. */
    static HotObject[] hotOf(Object[] objects, int from, int to, Random random) {
        HotObject[] hot = new HotObject[to - from];
        int count = 0;
        for (int i = from; i < to; i++) {
            if (objects[i] instanceof HotObject) {
                hot[count++] = (HotObject) objects[i];
            }
        }
        for (int i = count - 1; i > 0; i--) {
            int other = random.nextInt(i + 1);
            HotObject moved = hot[i];
            hot[i] = hot[other];
            hot[other] = moved;
        }
        return java.util.Arrays.copyOf(hot, count);
    }

    static void spin(long delay) {
        long end = System.nanoTime() + delay;
        while (System.nanoTime() < end) {
            Thread.onSpinWait();
        }
    }

    static void write(HotObject[] hot, int passes, long delay) {
        for (int pass = 0; pass < passes; pass++) {
            for (HotObject object : hot) {
                object.value = object.value * 31 + pass;
                if (delay > 0) {
                    spin(delay);
                }
            }
        }
    }

    /** Seconds in which the collector let the program wait. */
    static double collecting() {
        return ManagementFactory.getGarbageCollectorMXBeans().stream().mapToLong(collector -> collector.getCollectionTime()).sum() / 1e3;
    }

    public static void main(String[] words) throws InterruptedException {
        int hot = option(words, "--hot", 8) * (1 << 20) / OBJECT_BYTES;
        int cold = option(words, "--cold", 64) * (1 << 20) / OBJECT_BYTES;
        int threads = option(words, "--threads", 2);
        int passes = option(words, "--passes", 100);
        long delay = option(words, "--delay", 0);
        Random random = new Random(option(words, "--seed", 1));
        Object[] objects = make(hot, cold, random);
        Thread[] workers = new Thread[threads];
        HotObject[][] parts = new HotObject[threads][];
        for (int i = 0; i < threads; i++) {
            int from = (int) ((long) objects.length * i / threads);
            int to = (int) ((long) objects.length * (i + 1) / threads);
            HotObject[] part = hotOf(objects, from, to, random);
            parts[i] = part;
            workers[i] = new Thread(() -> write(part, passes, delay), "worker-" + i);
        }
        long begin = System.nanoTime();
        for (Thread worker : workers) {
            worker.start();
        }
        for (Thread worker : workers) {
            worker.join();
        }
        double seconds = (System.nanoTime() - begin) / 1e9;
        long sum = 0;
        long written = 0;
        for (HotObject[] part : parts) {
            written += (long) part.length * passes;
            for (HotObject object : part) {
                sum += object.value;
            }
        }
        System.err.printf("kernel_seconds %.3f%nwork_per_second %.0f%ngc_seconds %.3f%n", seconds, written / seconds, collecting());
        System.out.println("sum " + sum);
    }
}
