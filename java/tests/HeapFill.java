import java.util.ArrayList;

/** Fills the heap with arrays of bytes until it is full, and prints how many bytes fitted: {@code java HeapFill small|large|mixed|churn}. */
public final class HeapFill {
    static byte[] small() {
        return new byte[1000];
    }

    /** Larger than half of a region of a mebibyte. */
    static byte[] large() {
        return new byte[1000000];
    }

    static byte[] hot() {
        return new byte[1000];
    }

    private static byte[] make(String kind, int i) {
        if (kind.equals("large")) {
            return large();
        }
        return kind.equals("small") || i % 2 == 0 ? small() : hot();
    }

    /** Arrays of both colours that are dropped again; a tenth of a mebibyte lives. */
    private static void churn() {
        byte[][] alive = new byte[100][];
        for (int i = 0; i < 200000; i++) {
            alive[i % 100] = make("mixed", i);
        }
    }

    public static void main(String[] words) {
        if (words[0].equals("churn")) {
            churn();
            return;
        }
        ArrayList<byte[]> alive = new ArrayList<>(100000);
        long bytes = 0;
        try {
            for (int i = 0; ; i++) {
                byte[] made = make(words[0], i);
                alive.add(made);
                bytes += made.length;
            }
        } catch (OutOfMemoryError full) {
            alive = null;
        }
        System.out.println(bytes);
    }
}
