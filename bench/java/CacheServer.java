import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Random;

/**
 * A cache of pages as a web server has: the page that was not asked for the longest time leaves it. Most requests ask whether a page
 * has changed, which its tag answers; one in eight sends the page.
 *
 * <pre>java CacheServer PAGES REQUESTS</pre>
 *
 * PAGES is how many pages the cache holds, of three times as many that are asked for. Prints hits and a check sum; work is requests.
 */
public final class CacheServer {
    /** Bytes of a page: this many, and up to twice as many. */
    private static final int LEAST_BYTES = 256;
    private static final int SENT_EACH = 8;

    /** What the cache knows of a page. */
    static final class Page {
        final long tag;
        final byte[] body;
        int requests;

        Page(long tag, byte[] body) {
            this.tag = tag;
            this.body = body;
        }
    }

    /** Pages by their number, the one that was asked for last at the end. */
    static final class Cache extends LinkedHashMap<Integer, Page> {
        private static final long serialVersionUID = 1;
        private final int most;

        Cache(int most) {
            super(most * 2, 0.75f, true);
            this.most = most;
        }

        @Override
        protected boolean removeEldestEntry(Map.Entry<Integer, Page> eldest) {
            return size() > most;
        }
    }

    private final Cache cache;
    private long hits;
    private long sum;

    CacheServer(int pages) {
        cache = new Cache(pages);
    }

    static byte[] makeBody(int key) {
        byte[] body = new byte[LEAST_BYTES + (key * 31 & LEAST_BYTES - 1)];
        for (int i = 0; i < body.length; i++) {
            body[i] = (byte) (key + i);
        }
        return body;
    }

    static Page load(int key) {
        return new Page(key * 0x9E3779B97F4A7C15L, makeBody(key));
    }

    private static long send(byte[] body) {
        long sum = 0;
        for (byte value : body) {
            sum += value;
        }
        return sum;
    }

    void request(int key, boolean isSent) {
        Page page = cache.get(key);
        if (page == null) {
            page = load(key);
            cache.put(key, page);
        } else {
            hits++;
        }
        page.requests++;
        sum += isSent ? send(page.body) : page.tag;
    }

    /** Few pages get most of the requests; their numbers are spread over all. */
    static int next(Random random, int keys) {
        double uniform = random.nextDouble();
        long rank = (long) (keys * uniform * uniform * uniform);
        return (int) (rank * 0x9E3779B1L % keys);
    }

    public static void main(String[] words) {
        int pages = Integer.parseInt(words[0]);
        int requests = Integer.parseInt(words[1]);
        CacheServer server = new CacheServer(pages);
        Random random = new Random(1);
        for (int key = 0; key < pages; key++) {
            server.request(key, false);
        }
        Phase phase = new Phase();
        for (int i = 0; i < requests; i++) {
            server.request(next(random, 3 * pages), i % SENT_EACH == 0);
        }
        phase.end(requests);
        System.out.println("hits " + server.hits + " sum " + server.sum);
    }
}
