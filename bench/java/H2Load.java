import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
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

    private final Connection connection;
    private final Random random = new Random(1);
    private final int customers;
    private final int items;
    private final PreparedStatement nextOrder;
    private final PreparedStatement countOrder;
    private final PreparedStatement addOrder;
    private final PreparedStatement addUndelivered;
    private final PreparedStatement priceOf;
    private final PreparedStatement takeStock;
    private final PreparedStatement addLine;
    private final PreparedStatement payDistrict;
    private final PreparedStatement payCustomer;
    private final PreparedStatement addHistory;
    private final PreparedStatement lastOrder;
    private final PreparedStatement linesOf;
    private final PreparedStatement oldest;
    private final PreparedStatement removeUndelivered;
    private final PreparedStatement deliver;
    private final PreparedStatement scarce;

    H2Load(Connection connection, int customers, int items) throws SQLException {
        this.connection = connection;
        this.customers = customers;
        this.items = items;
        makeTables();
        nextOrder = connection.prepareStatement("SELECT next_order FROM district WHERE id = ?");
        countOrder = connection.prepareStatement("UPDATE district SET next_order = next_order + 1 WHERE id = ?");
        addOrder = connection.prepareStatement("INSERT INTO orders VALUES(?, ?, ?, NULL, ?)");
        addUndelivered = connection.prepareStatement("INSERT INTO undelivered VALUES(?, ?)");
        priceOf = connection.prepareStatement("SELECT price FROM item WHERE id = ?");
        takeStock = connection.prepareStatement(
            "UPDATE stock SET sold = sold + ?, quantity = CASE WHEN quantity < 20 THEN quantity + 91 ELSE quantity - ? END WHERE item = ?");
        addLine = connection.prepareStatement("INSERT INTO line VALUES(?, ?, ?, ?, ?)");
        payDistrict = connection.prepareStatement("UPDATE district SET paid = paid + ? WHERE id = ?");
        payCustomer = connection.prepareStatement(
            "UPDATE customer SET balance = balance - ?, payments = payments + 1 WHERE district = ? AND id = ?");
        addHistory = connection.prepareStatement("INSERT INTO history VALUES(?, ?, ?, ?)");
        lastOrder = connection.prepareStatement("SELECT MAX(id) FROM orders WHERE district = ? AND customer = ?");
        linesOf = connection.prepareStatement("SELECT SUM(amount) FROM line WHERE district = ? AND orders = ?");
        oldest = connection.prepareStatement("SELECT MIN(orders) FROM undelivered WHERE district = ?");
        removeUndelivered = connection.prepareStatement("DELETE FROM undelivered WHERE district = ? AND orders = ?");
        deliver = connection.prepareStatement("UPDATE orders SET carrier = ? WHERE district = ? AND id = ?");
        scarce = connection.prepareStatement(
            "SELECT COUNT(DISTINCT stock.item) FROM line JOIN stock ON stock.item = line.item "
                + "WHERE line.district = ? AND line.orders >= ? AND stock.quantity < ?");
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

    /** The first number of the result; 0 where it is none. */
    private static int number(PreparedStatement statement, Object... values) throws SQLException {
        set(statement, values);
        try (ResultSet found = statement.executeQuery()) {
            return found.next() ? found.getInt(1) : 0;
        }
    }

    private void newOrder(int district) throws SQLException {
        int order = number(nextOrder, district);
        int lines = 5 + random.nextInt(11);
        change(countOrder, district);
        change(addOrder, district, order, random.nextInt(customers), lines);
        change(addUndelivered, district, order);
        for (int line = 0; line < lines; line++) {
            int item = skewed(items);
            int quantity = 1 + random.nextInt(10);
            int price = number(priceOf, item);
            change(takeStock, quantity, quantity, item);
            change(addLine, district, order, line, item, quantity * price);
        }
    }

    private void payment(int district) throws SQLException {
        int customer = skewed(customers);
        int amount = 100 + random.nextInt(500_000);
        change(payDistrict, amount, district);
        change(payCustomer, amount, district, customer);
        change(addHistory, district, customer, amount, text(16));
    }

    private void orderState(int district) throws SQLException {
        int order = number(lastOrder, district, skewed(customers));
        number(linesOf, district, order);
    }

    private void delivery() throws SQLException {
        for (int district = 0; district < DISTRICTS; district++) {
            int order = number(oldest, district);
            if (order > 0) {
                change(removeUndelivered, district, order);
                change(deliver, 1 + random.nextInt(10), district, order);
            }
        }
    }

    private void stockLevel(int district) throws SQLException {
        number(scarce, district, number(nextOrder, district) - 20, 10 + random.nextInt(11));
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
