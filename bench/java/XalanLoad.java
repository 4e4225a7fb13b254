import java.io.StringReader;
import java.io.StringWriter;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Random;
import javax.xml.transform.Templates;
import javax.xml.transform.TransformerException;
import javax.xml.transform.stream.StreamResult;
import javax.xml.transform.stream.StreamSource;
import org.apache.xalan.processor.TransformerFactoryImpl;

/**
 * Xalan transforms documents of orders into pages, as DaCapo's benchmark of that name does.
 *
 * <pre>java XalanLoad ORDERS TRANSFORMATIONS</pre>
 *
 * A document has ORDERS orders; eight different ones are transformed in turn. The last hundred pages are kept. The measured phase is the transformations; prints the letters of all pages.
 */
public final class XalanLoad {
    private static final int DOCUMENTS = 8;
    private static final int KEPT = 100;
    private static final int CUSTOMERS = 40;
    private static final String[] CITIES = {"Bergen", "Cork", "Ghent", "Lyon", "Porto", "Turku"};

    /** A page has a table of each city's orders, sorted, and the sums of its customers by a key. */
    private static final String STYLESHEET = String.join("\n",
        "<xsl:stylesheet version='1.0' xmlns:xsl='http://www.w3.org/1999/XSL/Transform'>",
        "<xsl:output method='html'/>",
        "<xsl:key name='by-customer' match='order' use='@customer'/>",
        "<xsl:key name='by-city' match='order' use='city'/>",
        "<xsl:template match='/orders'>",
        "  <html><body>",
        "    <xsl:for-each select=\"order[generate-id() = generate-id(key('by-city', city)[1])]\">",
        "      <h1><xsl:value-of select='city'/></h1>",
        "      <table><xsl:apply-templates select=\"key('by-city', city)\">",
        "        <xsl:sort select='price' data-type='number' order='descending'/>",
        "      </xsl:apply-templates></table>",
        "    </xsl:for-each>",
        "  </body></html>",
        "</xsl:template>",
        "<xsl:template match='order'>",
        "  <tr><td><xsl:value-of select=\"translate(@customer, 'c', 'C')\"/></td>",
        "  <td><xsl:value-of select=\"format-number(price, '#,##0.00')\"/></td>",
        "  <td><xsl:value-of select=\"sum(key('by-customer', @customer)/price)\"/></td></tr>",
        "</xsl:template>",
        "</xsl:stylesheet>");

    private final Random random = new Random(1);
    private final Templates stylesheet;
    private final String[] documents = new String[DOCUMENTS];
    private final Deque<String> pages = new ArrayDeque<>();

    private XalanLoad(int orders) throws TransformerException {
        stylesheet = new TransformerFactoryImpl().newTemplates(new StreamSource(new StringReader(STYLESHEET)));
        for (int i = 0; i < DOCUMENTS; i++) {
            documents[i] = document(orders);
        }
    }

    private String document(int orders) {
        StringBuilder made = new StringBuilder("<orders>");
        for (int i = 0; i < orders; i++) {
            made.append("<order customer='c").append(random.nextInt(CUSTOMERS)).append("'><city>")
                .append(CITIES[random.nextInt(CITIES.length)]).append("</city><price>")
                .append(random.nextInt(100_000) / 100.0).append("</price></order>");
        }
        return made.append("</orders>").toString();
    }

    private String page(String document) throws TransformerException {
        StringWriter page = new StringWriter();
        stylesheet.newTransformer().transform(new StreamSource(new StringReader(document)), new StreamResult(page));
        return page.toString();
    }

    private long transform(int transformations) throws TransformerException {
        long letters = 0;
        for (int i = 0; i < transformations; i++) {
            String page = page(documents[i % DOCUMENTS]);
            letters += page.length();
            pages.addLast(page);
            if (pages.size() > KEPT) {
                pages.removeFirst();
            }
        }
        return letters;
    }

    public static void main(String[] words) throws TransformerException {
        XalanLoad load = new XalanLoad(Integer.parseInt(words[0]));
        int transformations = Integer.parseInt(words[1]);
        Phase phase = new Phase();
        long letters = load.transform(transformations);
        phase.end(transformations);
        System.out.println("letters " + letters);
    }
}
