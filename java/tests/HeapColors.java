import java.io.IOException;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.function.IntFunction;
import sun.misc.Unsafe;

/**
 * Objects of hot and cold classes and sites, and the colours of the regions that they are in, read from the table of the virtual machine.
 *
 * <pre>java HeapColors TABLE COUNT [COLLECTION...]</pre>
 *
 * COUNT objects of each kind are made; after each COLLECTION (system, young) they are looked up again. Prints, for each kind, the number
 * of objects in regions of each colour: {@code start cold-class 0 5000}. The code that allocates runs often enough to be compiled.
 */
public final class HeapColors {
    static final class Hot {
        long value;
    }

    static final class Cold {
        long value;
    }

    /** A class without a colour, whose objects are made by a site with one. */
    static final class Plain {
        long value;

        Plain(long value) {
            this.value = value;
        }
    }

    static Object hotClass(int i) {
        Hot made = new Hot();
        made.value = i;
        return made;
    }

    static Object coldClass(int i) {
        Cold made = new Cold();
        made.value = i;
        return made;
    }

    static Object hotSite(int i) {
        return new Plain(i);
    }

    static Object coldSite(int i) {
        return new Plain(i);
    }

    static Object hotBytes(int i) {
        return new byte[8 + i % 64];
    }

    static Object coldBytes(int i) {
        return new byte[8 + i % 64];
    }

    static Object coldCopy(int i) {
        byte[] made = new byte[200];
        System.arraycopy(FULL, i % 100, made, 0, 200);
        return made;
    }

    static Object coldArray(int i) {
        return new Object[1 + i % 16];
    }

    /** An array of a cold class; no site is named. */
    static Object coldClassArray(int i) {
        return new Cold[1 + i % 16];
    }

    static Object coldMatrix(int i) {
        return new int[2 + i % 3][9];
    }

    /** Larger than half of a region of a mebibyte. */
    static Object coldHumongous(int i) {
        return new byte[3 << 19];
    }

    static Object hotHumongous(int i) {
        return new byte[3 << 19];
    }

    private static final byte[] FULL = new byte[400];
    private static final Unsafe UNSAFE = unsafe();
    private static final long ELEMENTS = UNSAFE.arrayBaseOffset(Object[].class);
    private static final boolean WIDE = UNSAFE.arrayIndexScale(Object[].class) == 8;

    private static Unsafe unsafe() {
        try {
            Field field = Unsafe.class.getDeclaredField("theUnsafe");
            field.setAccessible(true);
            return (Unsafe) field.get(null);
        } catch (ReflectiveOperationException error) {
            throw new AssertionError(error);
        }
    }

    /** The table that the virtual machine publishes. */
    static final class Table {
        private final ByteBuffer bytes;
        private final long start;
        private final long regionBytes;
        private final long regions;
        private final Object[] holder = new Object[1];

        Table(String path) throws IOException {
            try (FileChannel file = FileChannel.open(Path.of(path))) {
                bytes = file.map(FileChannel.MapMode.READ_ONLY, 0, file.size()).order(ByteOrder.LITTLE_ENDIAN);
            }
            if (bytes.getLong(0) != 0x0070616568_6f7369L || bytes.getInt(8) != 1) {
                throw new IOException("no table: " + Long.toHexString(bytes.getLong(0)));
            }
            start = bytes.getLong(16);
            regionBytes = bytes.getLong(24);
            regions = bytes.getLong(32);
        }

        /** The byte of the region that an object is in. */
        int state(Object object) {
            holder[0] = object;
            if (WIDE) {
                return stateAt(UNSAFE.getLong(holder, ELEMENTS));
            }
            long narrow = UNSAFE.getInt(holder, ELEMENTS) & 0xffffffffL;
            int state = stateAt(narrow << 3);
            return state >= 0 ? state : stateAt(narrow);
        }

        private int stateAt(long address) {
            long region = Math.floorDiv(address - start, regionBytes);
            return region < 0 || region >= regions ? -1 : bytes.get(64 + (int) region) & 0xff;
        }
    }

    static final class Kind {
        final String name;
        final IntFunction<Object> make;
        final Object[] objects;

        Kind(String name, int count, IntFunction<Object> make) {
            this.name = name;
            this.make = make;
            this.objects = new Object[count];
        }

        void make() {
            for (int i = 0; i < objects.length; i++) {
                objects[i] = make.apply(i);
            }
        }
    }

    private static long collections() {
        long sum = 0;
        for (GarbageCollectorMXBean collector : ManagementFactory.getGarbageCollectorMXBeans()) {
            sum += collector.getCollectionCount();
        }
        return sum;
    }

    /** How many objects of a kind are in regions of each state; counted again where a collection moved them meanwhile. */
    private static int[] states(Table table, Kind kind) {
        while (true) {
            int[] states = new int[256];
            long before = collections();
            for (Object object : kind.objects) {
                states[table.state(object)]++;
            }
            if (collections() == before) {
                return states;
            }
        }
    }

    static void print(Table table, String when, Kind[] kinds) {
        for (Kind kind : kinds) {
            int[] states = states(table, kind);
            for (int state = 0; state < states.length; state++) {
                if (states[state] > 0) {
                    System.out.println(when + " " + kind.name + " " + ((state & 15) - 1) + " " + ((state >> 4) - 1) + " " + states[state]);
                }
            }
        }
    }

    static void collectYoung() {
        long before = collections();
        Object[] dropped = new Object[64];
        for (int i = 0; collections() == before; i++) {
            dropped[i % 64] = new byte[4096];
        }
    }

    public static void main(String[] words) throws IOException {
        int count = Integer.parseInt(words[1]);
        Kind[] kinds = {
            new Kind("hot-class", count, HeapColors::hotClass),
            new Kind("cold-class", count, HeapColors::coldClass),
            new Kind("hot-site", count, HeapColors::hotSite),
            new Kind("cold-site", count, HeapColors::coldSite),
            new Kind("hot-bytes", count, HeapColors::hotBytes),
            new Kind("cold-bytes", count, HeapColors::coldBytes),
            new Kind("cold-copy", count, HeapColors::coldCopy),
            new Kind("cold-array", count, HeapColors::coldArray),
            new Kind("cold-class-array", count, HeapColors::coldClassArray),
            new Kind("cold-matrix", count, HeapColors::coldMatrix),
            new Kind("cold-humongous", 4, HeapColors::coldHumongous),
            new Kind("hot-humongous", 4, HeapColors::hotHumongous),
        };
        for (Kind kind : kinds) {
            kind.make();
        }
        if (words[0].equals("-")) {
            System.out.println("made");
            return;
        }
        Table table = new Table(words[0]);
        print(table, "start", kinds);
        for (int i = 2; i < words.length; i++) {
            if (words[i].equals("system")) {
                System.gc();
            } else {
                collectYoung();
            }
            print(table, words[i], kinds);
        }
    }
}
