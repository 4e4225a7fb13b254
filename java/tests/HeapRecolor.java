import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Random;

/**
 * Objects that live while the guide file is replaced, and the colours of the regions that they are in after each collection.
 *
 * <pre>java HeapRecolor TABLE GUIDE COUNT STEP...</pre>
 *
 * Makes COUNT objects of each kind. A STEP is a collection (young, system), after which the kinds are printed as HeapColors does and the
 * objects are checked; churn, which replaces and drops objects in four threads; or the name of a file, which is renamed to GUIDE.
 */
public final class HeapRecolor {
    static class Item {
        long value;
        Object other;

        Item(long value) {
            this.value = value;
        }
    }

    /** Of a site with a colour, and of no class with one. */
    static final class Plain {
        long value;
    }

    private static final int HASHED = 7;
    private static final int LARGE = 400_000;
    private static final int CHURNED = 20_000;

    private final HeapColors.Kind[] kinds;
    private final HeapColors.Kind items;
    private final int[] hashes;

    private HeapRecolor(int count) {
        items = new HeapColors.Kind("item", count, HeapRecolor::item);
        kinds = new HeapColors.Kind[] {
            items,
            new HeapColors.Kind("item-array", count, i -> new Item[1 + i % 16]),
            new HeapColors.Kind("large-item-array", 3, i -> new Item[LARGE]),
            new HeapColors.Kind("site", count, HeapRecolor::site),
            new HeapColors.Kind("bytes", count, i -> new byte[8 + i % 64]),
        };
        for (HeapColors.Kind kind : kinds) {
            kind.make();
        }
        hashes = new int[count];
        link();
    }

    static Object item(int i) {
        return new Item(i);
    }

    static Object site(int i) {
        return new Plain();
    }

    /** Each object is reached from another one, too, and every seventh has its hash in its header. */
    private void link() {
        Object[] arrays = kinds[1].objects;
        for (int i = 0; i < items.objects.length; i++) {
            Item item = (Item) items.objects[i];
            item.other = arrays[i];
            ((Item[]) arrays[i])[0] = item;
            ((Plain) kinds[3].objects[i]).value = i;
            ((byte[]) kinds[4].objects[i])[0] = (byte) i;
            hashes[i] = i % HASHED == 0 ? System.identityHashCode(item) : 0;
        }
        for (Object large : kinds[2].objects) {
            System.arraycopy(items.objects, 0, (Item[]) large, 0, Math.min(LARGE, items.objects.length));
        }
    }

    private void check() {
        for (int i = 0; i < items.objects.length; i++) {
            Item item = (Item) items.objects[i];
            Item[] array = (Item[]) kinds[1].objects[i];
            boolean right = item.value == i && item.other == array && array[0] == item && array.length == 1 + i % 16
                && ((Plain) kinds[3].objects[i]).value == i && ((byte[]) kinds[4].objects[i])[0] == (byte) i
                && (i % HASHED != 0 || System.identityHashCode(item) == hashes[i]);
            for (Object large : kinds[2].objects) {
                right = right && (i >= LARGE || ((Item[]) large)[i] == item);
            }
            if (!right) {
                throw new AssertionError("object " + i + " is damaged");
            }
        }
        System.out.println("objects unharmed");
    }

    /** Keeps a table of chains, and replaces them at random. The value of each link follows from the first one. */
    private static void churn(int seed) {
        Random random = new Random(seed);
        Item[] chains = new Item[CHURNED];
        for (int i = 0; i < 40 * CHURNED; i++) {
            int place = random.nextInt(CHURNED);
            checkChain(chains[place]);
            Item first = new Item(i);
            Item last = first;
            for (int length = random.nextInt(6); length > 0; length--) {
                Item link = new Item(last.value + 1);
                last.other = random.nextBoolean() ? link : new Item[] {link};
                last = link;
            }
            chains[place] = first;
        }
    }

    private static void checkChain(Item item) {
        while (item != null && item.other != null) {
            Item next = item.other instanceof Item[] array ? array[0] : (Item) item.other;
            if (next.value != item.value + 1) {
                throw new AssertionError("a chain is damaged");
            }
            item = next;
        }
    }

    private static Thread[] startChurn() {
        Thread[] threads = new Thread[4];
        for (int i = 0; i < threads.length; i++) {
            int seed = i;
            threads[i] = new Thread(() -> churn(seed));
            threads[i].setUncaughtExceptionHandler((thread, error) -> {
                error.printStackTrace();
                System.exit(1);
            });
            threads[i].start();
        }
        return threads;
    }

    public static void main(String[] words) throws IOException, InterruptedException {
        HeapColors.Table table = new HeapColors.Table(words[0]);
        HeapRecolor made = new HeapRecolor(Integer.parseInt(words[2]));
        HeapColors.print(table, "start", made.kinds);
        Thread[] threads = {};
        for (int i = 3; i < words.length; i++) {
            switch (words[i]) {
                case "young" -> HeapColors.collectYoung();
                case "system" -> System.gc();
                case "churn" -> threads = startChurn();
                default -> {
                    Files.move(Path.of(words[i]), Path.of(words[1]), StandardCopyOption.ATOMIC_MOVE);
                    continue;
                }
            }
            HeapColors.print(table, (i - 2) + ":" + words[i], made.kinds);
            made.check();
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }
}
