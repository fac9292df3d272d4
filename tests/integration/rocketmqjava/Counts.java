import java.util.Collection;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

/** Which bodies were to come, and which came. */
final class Counts {
    private static final int LIMIT_MS = 45_000;
    private static final int SETTLE_MS = 500;  // in which what comes twice shows

    private final Set<String> sent = ConcurrentHashMap.newKeySet();
    private final Map<String, Integer> came = new ConcurrentHashMap<>();
    private final AtomicInteger misplaced = new AtomicInteger();

    void sent(String body) {
        sent.add(body);
    }

    void sent(Collection<String> bodies) {
        sent.addAll(bodies);
    }

    void came(byte[] body) {
        came.merge(new String(body), 1, Integer::sum);
    }

    /** What came out of order, too early or with wrong attempts. */
    void misplaced() {
        misplaced.incrementAndGet();
    }

    boolean complete() {
        return came.keySet().containsAll(sent);
    }

    /** How many different ones came. */
    int size() {
        return came.size();
    }

    void await() throws InterruptedException {
        for (long end = System.currentTimeMillis() + LIMIT_MS; !complete() && System.currentTimeMillis() < end;) {
            Thread.sleep(20);
        }
        Thread.sleep(SETTLE_MS);
    }

    /** "wrong" are those that were not to come, and those that came misplaced. */
    void print(String scenario) {
        Set<String> lost = new HashSet<>(sent);
        lost.removeAll(came.keySet());
        Set<String> strangers = new HashSet<>(came.keySet());
        strangers.removeAll(sent);
        int received = came.values().stream().mapToInt(Integer::intValue).sum();
        System.out.printf("%s sent=%d received=%d duplicated=%d lost=%d wrong=%d%n", scenario, sent.size(), received,
            received - came.size(), lost.size(), strangers.size() + misplaced.get());
    }
}
