import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiConsumer;

/**
 * Publishes at each QoS to a subscriber of its own, and counts what came.
 *
 * <p>Between the lines "cut me" and "done" the connections may be cut: clients come back by themselves.
 */
final class Rounds {
    /** One client, connected with a session that it keeps, which comes back by itself. */
    interface Session {
        /** Subscribe at QoS 2. */
        void subscribe(String filter) throws Exception;

        /** Publish, and return when that is over. */
        void publish(String topic, int qos, byte[] body) throws Exception;
    }

    interface Connector {
        Session connect(String name, BiConsumer<String, byte[]> take) throws Exception;
    }

    private final List<Map<String, Integer>> came = new ArrayList<>();
    private final int count;

    Rounds(int count) {
        this.count = count;
        for (int qos = 0; qos < 3; qos++) {
            came.add(new ConcurrentHashMap<>());
        }
    }

    void run(Connector connector) throws Exception {
        connector.connect("java-subscriber", this::take).subscribe("java/#");
        Session publisher = connector.connect("java-publisher", (topic, body) -> {});
        for (int number = 0; number < count; number++) {
            publish(publisher, 0, number);
        }
        until(10, 0);
        System.out.println("cut me");
        for (int number = 0; number < count; number++) {
            publish(publisher, 1, number);
            publish(publisher, 2, number);
        }
        until(30, 1, 2);
        print();
        System.exit(0);
    }

    private static void publish(Session publisher, int qos, int number) throws Exception {
        byte[] body = String.valueOf(number).getBytes(StandardCharsets.UTF_8);
        publisher.publish("java/" + qos + "/" + number % 7, qos, body);
    }

    private void take(String topic, byte[] body) {
        int qos = Integer.parseInt(topic.split("/")[1]);
        came.get(qos).merge(new String(body, StandardCharsets.UTF_8), 1, Integer::sum);
    }

    private void until(int seconds, int... levels) throws InterruptedException {
        for (int tries = 0; tries < seconds * 50; tries++) {
            boolean hasAll = true;
            for (int qos : levels) {
                hasAll = hasAll && came.get(qos).size() == count;
            }
            if (hasAll) {
                return;
            }
            Thread.sleep(20);
        }
    }

    private void print() {
        for (int qos = 0; qos < 3; qos++) {
            int received = came.get(qos).values().stream().mapToInt(Integer::intValue).sum();
            int distinct = came.get(qos).size();
            System.out.printf("qos=%d sent=%d received=%d duplicated=%d lost=%d%n",
                    qos, count, received, received - distinct, count - distinct);
        }
        System.out.println("done");
    }
}
