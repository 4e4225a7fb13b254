import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Threads, class loaders, deep calls and collections that come and go.
 *
 * <pre>java HeapThreads MILLISECONDS</pre>
 *
 * Prints {@code done} and the number of loaders, threads and collections.
 */
public final class HeapThreads {
    /** Loaded again and again by loaders that become garbage. */
    public static final class Loaded implements Runnable {
        private final Map<Integer, long[]> made = new TreeMap<>();

        @Override
        public void run() {
            for (int i = 0; i < 20_000; i++) {
                made.computeIfAbsent(i % 500, key -> new long[8])[i % 8] += i;
            }
        }
    }

    /** Loads {@link Loaded} itself, and all else by its parent. */
    private static final class Loader extends ClassLoader {
        Loader() {
            super(HeapThreads.class.getClassLoader());
        }

        Runnable make() throws IOException, ReflectiveOperationException {
            String name = Loaded.class.getName();
            try (InputStream file = HeapThreads.class.getResourceAsStream(name + ".class")) {
                byte[] bytes = file.readAllBytes();
                Class<?> made = defineClass(name, bytes, 0, bytes.length);
                return (Runnable) made.getDeclaredConstructor().newInstance();
            }
        }
    }

    private static int deep(int calls, List<long[]> made) {
        made.add(new long[4]);
        return calls == 0 ? made.size() : deep(calls - 1, made) + 1;
    }

    private static volatile boolean ends;

    private static Thread repeat(int[] counts, int index, Step step) {
        Thread thread = new Thread(() -> {
            try {
                for (; !ends; counts[index]++) {
                    step.take();
                }
            } catch (Exception error) {
                throw new IllegalStateException(error);
            }
        });
        thread.start();
        return thread;
    }

    private interface Step {
        void take() throws Exception;
    }

    public static void main(String[] words) throws InterruptedException {
        int[] counts = new int[3];
        List<Thread> threads = List.of(
            repeat(counts, 0, () -> new Loader().make().run()),
            repeat(counts, 1, () -> {
                Thread made = new Thread(() -> deep(2_000, new ArrayList<>()));
                made.start();
                made.join();
            }),
            repeat(counts, 2, () -> {
                System.gc();
                Thread.sleep(20);
            }));
        Thread.sleep(Integer.parseInt(words[0]));
        ends = true;
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println("done " + counts[0] + " " + counts[1] + " " + counts[2]);
    }
}
