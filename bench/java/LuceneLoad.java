import java.io.IOException;
import java.util.Random;
import org.apache.lucene.analysis.en.EnglishAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.StringField;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.SerialMergeScheduler;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.BooleanClause;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.PhraseQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.search.TopDocs;
import org.apache.lucene.store.ByteBuffersDirectory;
import org.apache.lucene.store.Directory;

/**
 * Lucene indexes documents of random words into the heap and searches them.
 *
 * <pre>java LuceneLoad index|search DOCUMENTS QUERIES</pre>
 *
 * The measured phase is the indexing or the searching; index makes no query. Prints what was found; work is documents or queries.
 */
public final class LuceneLoad {
    private static final int VOCABULARY = 30_000;
    private static final int TITLE_WORDS = 6;
    private static final int BODY_WORDS = 80;

    private final Random random = new Random(1);
    private final Directory directory = new ByteBuffersDirectory();

    /** Few words are frequent, as in a language. */
    private String word() {
        double uniform = random.nextDouble();
        return "w" + Integer.toString((int) (VOCABULARY * uniform * uniform * uniform), 36) + "x";
    }

    private String text(int words) {
        StringBuilder made = new StringBuilder();
        for (int i = 0; i < words; i++) {
            made.append(word()).append(' ');
        }
        return made.toString();
    }

    private Document document(int number) {
        Document made = new Document();
        made.add(new StringField("id", Integer.toString(number), Field.Store.YES));
        made.add(new TextField("title", text(TITLE_WORDS), Field.Store.YES));
        made.add(new TextField("body", text(BODY_WORDS), Field.Store.YES));
        return made;
    }

    void index(int documents) throws IOException {
        IndexWriterConfig settings = new IndexWriterConfig(new EnglishAnalyzer());
        // By one thread, so that each run makes the same index.
        settings.setMergeScheduler(new SerialMergeScheduler());
        try (IndexWriter writer = new IndexWriter(directory, settings)) {
            for (int i = 0; i < documents; i++) {
                writer.addDocument(document(i));
            }
        }
    }

    private Term term() {
        return new Term("body", word());
    }

    private Query query(int number) {
        switch (number % 4) {
            case 0:
                return new TermQuery(term());
            case 1:
                return both(BooleanClause.Occur.MUST);
            case 2:
                return both(BooleanClause.Occur.SHOULD);
            default:
                return new PhraseQuery("body", word(), word());
        }
    }

    private Query both(BooleanClause.Occur occur) {
        return new BooleanQuery.Builder().add(new TermQuery(term()), occur).add(new TermQuery(term()), occur).build();
    }

    /** The documents that the queries found, and the letters of the titles of the best ones. */
    String search(int queries) throws IOException {
        long found = 0;
        long letters = 0;
        try (DirectoryReader reader = DirectoryReader.open(directory)) {
            IndexSearcher searcher = new IndexSearcher(reader);
            for (int i = 0; i < queries; i++) {
                Query query = query(i);
                TopDocs best = searcher.search(query, 10);
                found += searcher.count(query);
                for (ScoreDoc each : best.scoreDocs) {
                    letters += searcher.storedFields().document(each.doc).get("title").length();
                }
            }
        }
        return "found " + found + " letters " + letters;
    }

    private int documents() throws IOException {
        try (DirectoryReader reader = DirectoryReader.open(directory)) {
            return reader.numDocs();
        }
    }

    public static void main(String[] words) throws IOException {
        int documents = Integer.parseInt(words[1]);
        LuceneLoad load = new LuceneLoad();
        Phase indexing = new Phase();
        load.index(documents);
        if (words[0].equals("index")) {
            indexing.end(documents);
            System.out.println("documents " + load.documents());
            return;
        }
        int queries = Integer.parseInt(words[2]);
        Phase searching = new Phase();
        String found = load.search(queries);
        searching.end(queries);
        System.out.println(found);
    }
}
