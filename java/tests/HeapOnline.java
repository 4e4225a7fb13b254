import java.io.IOException;
import java.util.Random;

/**
 * Objects of a hot class and of a cold one, as many of each, made in turn, and the regions that they are in while the hot ones are accessed.
 *
 * <pre>java HeapOnline TABLE COUNT PASSES</pre>
 *
 * Makes COUNT objects of each class, and passes over the hot ones in random order until most of the cold ones are in cold regions, PASSES times
 * at most. Prints how many of each class are in regions of each colour at the start and at the end: {@code end cold 1 1 5000}.
 * With {@code -} for TABLE nothing is looked up, and there are PASSES passes.
 */
public final class HeapOnline {
    /** 64 bytes with the header. */
    static class Item {
        long value;
        long a, b, c, d, e;
    }

    static final class Hot extends Item {
    }

    static final class Cold extends Item {
    }

    /** After a pass, each 64th object is looked up. */
    private static final int LOOKED_UP = 64;

    /** Garbage once the next one is made. */
    private static Object last;

    private final HeapColors.Table table;
    private final Hot[] hot;
    private final Cold[] cold;

    private HeapOnline(HeapColors.Table table, int count) {
        this.table = table;
        hot = new Hot[count];
        cold = new Cold[count];
        for (int i = 0; i < count; i++) {
            hot[i] = new Hot();
            cold[i] = new Cold();
            cold[i].value = i;
        }
        shuffle(new Random(1));
    }

    private void shuffle(Random random) {
        for (int i = hot.length - 1; i > 0; i--) {
            int other = random.nextInt(i + 1);
            Hot moved = hot[i];
            hot[i] = hot[other];
            hot[other] = moved;
        }
    }

    /** Writes to each hot object, and makes garbage, so that there are collections. */
    private void pass() {
        for (Hot item : hot) {
            item.value++;
            last = new byte[64];
        }
    }

    private boolean isParted() {
        if (table == null) {
            return false;
        }
        int looked = 0;
        int parted = 0;
        for (int i = 0; i < cold.length; i += LOOKED_UP) {
            looked++;
            parted += table.state(cold[i]) % 16 == 2 ? 1 : 0;
        }
        return parted * 20L >= looked * 19L;
    }

    private void check(int passes) {
        long sum = 0;
        for (int i = 0; i < cold.length; i++) {
            sum += cold[i].value - i;
            sum += hot[i].value - passes;
        }
        if (sum != 0) {
            throw new AssertionError("objects are damaged");
        }
    }

    public static void main(String[] words) throws IOException {
        int count = Integer.parseInt(words[1]);
        HeapOnline made = new HeapOnline(words[0].equals("-") ? null : new HeapColors.Table(words[0]), count);
        made.print("start");
        int most = Integer.parseInt(words[2]);
        int passes = 0;
        while (passes < most && !made.isParted()) {
            made.pass();
            passes++;
        }
        made.check(passes);
        made.print("end");
        System.out.println("passes " + passes);
    }

    private void print(String when) {
        if (table == null) {
            return;
        }
        HeapColors.Kind[] kinds = {
            new HeapColors.Kind("hot", hot.length, i -> hot[i]),
            new HeapColors.Kind("cold", cold.length, i -> cold[i]),
        };
        for (HeapColors.Kind kind : kinds) {
            kind.make();
        }
        HeapColors.print(table, when, kinds);
    }
}
