import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/**
 * An analytics job: orders are loaded as objects, and queries group them by customer or by product and sort the groups. An order has
 * a note that few queries read.
 *
 * <pre>java Analytics ORDERS QUERIES</pre>
 *
 * Prints a check sum of the largest groups; work is orders that were scanned.
 */
public final class Analytics {
    private static final int CUSTOMERS = 20_000;
    private static final int PRODUCTS = 2_000;
    /** Of this many queries one reads the notes. */
    private static final int NOTES_EACH = 16;

    static final class Order {
        final int customer;
        final int product;
        final long cents;
        final String note;

        Order(int customer, int product, long cents, String note) {
            this.customer = customer;
            this.product = product;
            this.cents = cents;
            this.note = note;
        }
    }

    static final class Group {
        final int key;
        long cents;
        int orders;

        Group(int key) {
            this.key = key;
        }
    }

    static String makeNote(Random random) {
        StringBuilder text = new StringBuilder("delivered by carrier ");
        for (int i = 0; i < 6; i++) {
            text.append(Integer.toHexString(random.nextInt())).append(' ');
        }
        return text.toString();
    }

    static List<Order> load(int count, Random random) {
        List<Order> orders = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            orders.add(new Order(random.nextInt(CUSTOMERS), random.nextInt(PRODUCTS), random.nextInt(100_000), makeNote(random)));
        }
        return orders;
    }

    static List<Group> groups(List<Order> orders, boolean byCustomer) {
        Map<Integer, Group> groups = new HashMap<>();
        for (Order order : orders) {
            Group group = groups.computeIfAbsent(byCustomer ? order.customer : order.product, Group::new);
            group.cents += order.cents;
            group.orders++;
        }
        return new ArrayList<>(groups.values());
    }

    static long largest(List<Group> groups) {
        groups.sort(Comparator.comparingLong((Group group) -> group.cents).reversed().thenComparingInt(group -> group.key));
        long sum = 0;
        for (Group group : groups.subList(0, Math.min(10, groups.size()))) {
            sum += group.cents * group.orders + group.key;
        }
        return sum;
    }

    static long notesWith(List<Order> orders, char letter) {
        return orders.stream().filter(order -> order.note.indexOf(letter, 30) == 30).count();
    }

    public static void main(String[] words) {
        int count = Integer.parseInt(words[0]);
        int queries = Integer.parseInt(words[1]);
        List<Order> orders = load(count, new Random(1));
        Phase phase = new Phase();
        long sum = 0;
        for (int query = 0; query < queries; query++) {
            sum += query % NOTES_EACH == 0 ? notesWith(orders, 'a') : largest(groups(orders, query % 2 == 0));
        }
        phase.end((long) count * queries);
        System.out.println("sum " + sum);
    }
}
