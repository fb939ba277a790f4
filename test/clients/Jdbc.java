import java.sql.Array;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import org.postgresql.PGConnection;

/**
 * Sends a batch of keys from Java with PostgreSQL's JDBC driver: as a binary array, as text, and to gpuds_contains.
 *
 * <p>Jdbc URL NKEYS prints "form answer milliseconds", of the fastest of some executions.
 */
public class Jdbc {
    private static final int EXECUTIONS = 10;

    private interface Reader {
        String read(ResultSet row) throws Exception;
    }

    private static void lookUp(Connection connection, String form, String query, Object keys, Reader reader)
            throws Exception {
        String answer = "";
        double fastest = Double.MAX_VALUE;

        try (PreparedStatement statement = connection.prepareStatement(query)) {
            if (keys instanceof Array) {
                statement.setArray(1, (Array) keys);
            } else {
                statement.setString(1, (String) keys);
            }
            for (int i = 0; i < EXECUTIONS; i++) {
                long began = System.nanoTime();

                try (ResultSet row = statement.executeQuery()) {
                    row.next();
                    answer = reader.read(row);
                }
                fastest = Math.min(fastest, (System.nanoTime() - began) / 1e6);
            }
        }
        System.out.printf("%s %s %.1f%n", form, answer, fastest);
    }

    private static String countTrue(ResultSet row) throws Exception {
        int found = 0;

        for (Boolean answer : (Boolean[]) row.getArray(1).getArray()) {
            found += answer ? 1 : 0;
        }
        return String.valueOf(found);
    }

    public static void main(String[] args) throws Exception {
        int n = Integer.parseInt(args[1]);
        long[] keys = new long[n];
        StringBuilder text = new StringBuilder();
        Reader sums = row -> row.getLong(1) + "|" + row.getLong(2);

        for (int i = 0; i < n; i++) {
            keys[i] = i * 3L;
            text.append(i == 0 ? '{' : ',').append(keys[i]);
        }
        text.append('}');
        // prepareThreshold=1 prepares the statement on the server at its first execution, not at its fifth
        try (Connection connection = DriverManager.getConnection(args[0] + "&prepareThreshold=1")) {
            // PGConnection's createArrayOf takes an array of long, which goes in binary; java.sql's takes Long only.
            Array array = connection.unwrap(PGConnection.class).createArrayOf("int8", keys);

            lookUp(connection, "binary", "SELECT count(*), sum(v) FROM items WHERE key = ANY (?)", array, sums);
            lookUp(connection, "contains", "SELECT gpuds_contains('items_key_idx', ?)", array, Jdbc::countTrue);
            lookUp(connection, "text", "SELECT count(*), sum(v) FROM items WHERE key = ANY (?::bigint[])",
                    text.toString(), sums);
        }
    }
}
