import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.EnumMap;
import java.util.Map;
import java.util.Random;

/**
 * A load like TPC-C's on the database H2 in memory: one warehouse, one client. Of a hundred transactions 45 are new orders, 43 payments,
 * and four each ask for the state of an order, deliver orders and ask for scarce items.
 *
 * <pre>java H2Load CUSTOMERS ITEMS TRANSACTIONS</pre>
 *
 * CUSTOMERS is those of each of ten districts (TPC-C: 3000), ITEMS those of the stock (100,000). Prints sums over the tables at the end;
 * work is transactions.
 */
public final class H2Load {
    private static final int DISTRICTS = 10;
    private static final String[] TABLES = {
        "CREATE TABLE district(id INT PRIMARY KEY, next_order INT, paid BIGINT)",
        "CREATE TABLE customer(district INT, id INT, balance BIGINT, payments INT, data VARCHAR(500), PRIMARY KEY(district, id))",
        "CREATE TABLE item(id INT PRIMARY KEY, name VARCHAR(24), price INT, data VARCHAR(50))",
        "CREATE TABLE stock(item INT PRIMARY KEY, quantity INT, sold INT, data VARCHAR(300))",
        "CREATE TABLE orders(district INT, id INT, customer INT, carrier INT, lines INT, PRIMARY KEY(district, id))",
        "CREATE INDEX orders_of ON orders(district, customer, id)",
        "CREATE TABLE line(district INT, orders INT, number INT, item INT, amount INT, PRIMARY KEY(district, orders, number))",
        "CREATE TABLE undelivered(district INT, orders INT, PRIMARY KEY(district, orders))",
        "CREATE TABLE history(district INT, customer INT, amount INT, data VARCHAR(24))",
    };

    /** The statements of the transactions. */
    private enum Query {
        NEXT_ORDER("SELECT next_order FROM district WHERE id = ?"),
        COUNT_ORDER("UPDATE district SET next_order = next_order + 1 WHERE id = ?"),
        ADD_ORDER("INSERT INTO orders VALUES(?, ?, ?, NULL, ?)"),
        ADD_UNDELIVERED("INSERT INTO undelivered VALUES(?, ?)"),
        PRICE_OF("SELECT price FROM item WHERE id = ?"),
        TAKE_STOCK(
            "UPDATE stock SET sold = sold + ?, quantity = CASE WHEN quantity < 20 THEN quantity + 91 ELSE quantity - ? END WHERE item = ?"),
        ADD_LINE("INSERT INTO line VALUES(?, ?, ?, ?, ?)"),
        PAY_DISTRICT("UPDATE district SET paid = paid + ? WHERE id = ?"),
        PAY_CUSTOMER("UPDATE customer SET balance = balance - ?, payments = payments + 1 WHERE district = ? AND id = ?"),
        ADD_HISTORY("INSERT INTO history VALUES(?, ?, ?, ?)"),
        LAST_ORDER("SELECT MAX(id) FROM orders WHERE district = ? AND customer = ?"),
        LINES_OF("SELECT SUM(amount) FROM line WHERE district = ? AND orders = ?"),
        OLDEST("SELECT MIN(orders) FROM undelivered WHERE district = ?"),
        REMOVE_UNDELIVERED("DELETE FROM undelivered WHERE district = ? AND orders = ?"),
        DELIVER("UPDATE orders SET carrier = ? WHERE district = ? AND id = ?"),
        SCARCE(
            "SELECT COUNT(DISTINCT stock.item) FROM line JOIN stock ON stock.item = line.item "
                + "WHERE line.district = ? AND line.orders >= ? AND stock.quantity < ?");

        final String text;

        Query(String text) {
            this.text = text;
        }
    }

    private final Connection connection;
    private final Map<Query, PreparedStatement> statements = new EnumMap<>(Query.class);
    private final Random random = new Random(1);
    private final int customers;
    private final int items;

    H2Load(Connection connection, int customers, int items) throws SQLException {
        this.connection = connection;
        this.customers = customers;
        this.items = items;
        makeTables();
        for (Query query : Query.values()) {
            statements.put(query, connection.prepareStatement(query.text));
        }
    }

    private String text(int length) {
        StringBuilder made = new StringBuilder(length);
        for (int i = 0; i < length; i++) {
            made.append((char) ('a' + random.nextInt(26)));
        }
        return made.toString();
    }

    private void makeTables() throws SQLException {
        try (Statement statement = connection.createStatement()) {
            for (String table : TABLES) {
                statement.execute(table);
            }
        }
        for (int district = 0; district < DISTRICTS; district++) {
            change(connection.prepareStatement("INSERT INTO district VALUES(?, 1, 0)"), district);
        }
        makeCustomers();
        makeItems();
        connection.commit();
    }

    private void makeCustomers() throws SQLException {
        try (PreparedStatement add = connection.prepareStatement("INSERT INTO customer VALUES(?, ?, 0, 0, ?)")) {
            for (int i = 0; i < DISTRICTS * customers; i++) {
                change(add, i / customers, i % customers, text(300 + random.nextInt(200)));
            }
        }
    }

    private void makeItems() throws SQLException {
        try (PreparedStatement item = connection.prepareStatement("INSERT INTO item VALUES(?, ?, ?, ?)");
                PreparedStatement stock = connection.prepareStatement("INSERT INTO stock VALUES(?, ?, 0, ?)")) {
            for (int i = 0; i < items; i++) {
                change(item, i, text(14 + random.nextInt(10)), 100 + random.nextInt(9_900), text(26 + random.nextInt(24)));
                change(stock, i, 10 + random.nextInt(90), text(240));
            }
        }
    }

    private static void set(PreparedStatement statement, Object... values) throws SQLException {
        for (int i = 0; i < values.length; i++) {
            statement.setObject(i + 1, values[i]);
        }
    }

    private static void change(PreparedStatement statement, Object... values) throws SQLException {
        set(statement, values);
        statement.executeUpdate();
    }

    private void change(Query query, Object... values) throws SQLException {
        change(statements.get(query), values);
    }

    /** The first number of the result; 0 where it is none. */
    private int number(Query query, Object... values) throws SQLException {
        PreparedStatement statement = statements.get(query);
        set(statement, values);
        try (ResultSet found = statement.executeQuery()) {
            return found.next() ? found.getInt(1) : 0;
        }
    }

    private void newOrder(int district) throws SQLException {
        int order = number(Query.NEXT_ORDER, district);
        int lines = 5 + random.nextInt(11);
        change(Query.COUNT_ORDER, district);
        change(Query.ADD_ORDER, district, order, random.nextInt(customers), lines);
        change(Query.ADD_UNDELIVERED, district, order);
        for (int line = 0; line < lines; line++) {
            int item = skewed(items);
            int quantity = 1 + random.nextInt(10);
            int price = number(Query.PRICE_OF, item);
            change(Query.TAKE_STOCK, quantity, quantity, item);
            change(Query.ADD_LINE, district, order, line, item, quantity * price);
        }
    }

    private void payment(int district) throws SQLException {
        int customer = skewed(customers);
        int amount = 100 + random.nextInt(500_000);
        change(Query.PAY_DISTRICT, amount, district);
        change(Query.PAY_CUSTOMER, amount, district, customer);
        change(Query.ADD_HISTORY, district, customer, amount, text(16));
    }

    private void orderState(int district) throws SQLException {
        int order = number(Query.LAST_ORDER, district, skewed(customers));
        number(Query.LINES_OF, district, order);
    }

    private void delivery() throws SQLException {
        for (int district = 0; district < DISTRICTS; district++) {
            int order = number(Query.OLDEST, district);
            if (order > 0) {
                change(Query.REMOVE_UNDELIVERED, district, order);
                change(Query.DELIVER, 1 + random.nextInt(10), district, order);
            }
        }
    }

    private void stockLevel(int district) throws SQLException {
        number(Query.SCARCE, district, number(Query.NEXT_ORDER, district) - 20, 10 + random.nextInt(11));
    }

    /** As TPC-C's NURand some numbers are more frequent than others. */
    private int skewed(int bound) {
        return (random.nextInt(Math.max(1, bound / 4)) | random.nextInt(bound)) % bound;
    }

    void transaction() throws SQLException {
        int kind = random.nextInt(100);
        int district = random.nextInt(DISTRICTS);
        if (kind < 45) {
            newOrder(district);
        } else if (kind < 88) {
            payment(district);
        } else if (kind < 92) {
            orderState(district);
        } else if (kind < 96) {
            delivery();
        } else {
            stockLevel(district);
        }
        connection.commit();
    }

    private String sums() throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet found = statement.executeQuery("SELECT (SELECT SUM(amount) FROM line), (SELECT SUM(paid) FROM district), "
                    + "(SELECT SUM(sold) FROM stock), (SELECT COUNT(*) FROM undelivered)")) {
            found.next();
            return found.getLong(1) + " " + found.getLong(2) + " " + found.getLong(3) + " " + found.getLong(4);
        }
    }

    public static void main(String[] words) throws SQLException {
        int transactions = Integer.parseInt(words[2]);
        try (Connection connection = DriverManager.getConnection("jdbc:h2:mem:tpcc")) {
            connection.setAutoCommit(false);
            H2Load load = new H2Load(connection, Integer.parseInt(words[0]), Integer.parseInt(words[1]));
            Phase phase = new Phase();
            for (int i = 0; i < transactions; i++) {
                load.transaction();
            }
            phase.end(transactions);
            System.out.println("sums " + load.sums());
        }
    }
}
