import java.util.Random;

/**
 * A cache of records on Java's heap, of which a tenth is read, beside objects that live for a moment.
 *
 * Usage: Records RECORDS READS. A record has 1 KiB, half of it compressible. Prints a sum, and the time of the reads to standard error.
 */
final class Records {
    private static final int BYTES = 1000;
    private static final int HOT_PART = 10;
    /** One read in this number is of any record. */
    private static final int ANY = 1 << 16;

    private final byte[][] records;

    private Records(int count) {
        Random numbers = new Random(1);
        byte[] half = new byte[BYTES / 2];
        records = new byte[count][];
        for (int at = 0; at < count; at++) {
            numbers.nextBytes(half);
            records[at] = new byte[BYTES];
            System.arraycopy(half, 0, records[at], 0, half.length);
        }
    }

    /** The newest tenth is hot. */
    private int chosen(Random numbers) {
        int hot = records.length / HOT_PART;
        return numbers.nextInt(ANY) == 0 ? numbers.nextInt(records.length) : records.length - 1 - numbers.nextInt(hot);
    }

    /** The sum of a copy, which is garbage at once, as the answers of a server are. */
    private long answer(int record) {
        byte[] copy = records[record].clone();
        long sum = 0;
        for (byte each : copy) {
            sum += each;
        }
        return sum;
    }

    public static void main(String[] arguments) {
        Records cache = new Records(Integer.parseInt(arguments[0]));
        int reads = Integer.parseInt(arguments[1]);
        Random numbers = new Random(2);
        long begin = System.nanoTime();
        long sum = 0;
        for (int read = 0; read < reads; read++) {
            sum += cache.answer(cache.chosen(numbers));
        }
        System.out.println("sum " + sum);
        System.err.printf("kernel_seconds %.6f%n", (System.nanoTime() - begin) / 1e9);
    }
}
