import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageExt;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** The ways to send. What was sent is pulled. */
final class Sends {
    static final Map<String, Clients.Scenario> SCENARIOS = new LinkedHashMap<>();
    private static final int KEYS = 3;
    private static final int DELAY_MS = 1_000;  // of level 1

    static {
        SCENARIOS.put("sync", Sends::sync);
        SCENARIOS.put("async", Sends::async);
        SCENARIOS.put("oneway", Sends::oneway);
        SCENARIOS.put("batch", Sends::batch);
        SCENARIOS.put("large", Sends::large);
        SCENARIOS.put("ordered", Sends::ordered);
        SCENARIOS.put("transactional", Sends::transactional);
        SCENARIOS.put("delayed", Sends::delayed);
        SCENARIOS.put("timed", Sends::timed);
    }

    private Sends() { }

    private static void sync(String topic, int count) throws Exception {
        Counts counts = new Counts();
        Clients.send(topic, Clients.bodies(topic, 0, count), counts);
        Clients.pull(topic, counts);
        counts.print("sync");
    }

    private static void async(String topic, int count) throws Exception {
        Counts counts = new Counts();
        CountDownLatch answered = new CountDownLatch(count);
        for (Message message : Clients.messages(topic, Clients.bodies(topic, 0, count))) {
            Clients.producer.send(message, new SendCallback() {
                @Override
                public void onSuccess(SendResult result) {
                    counts.sent(new String(message.getBody()));
                    answered.countDown();
                }

                @Override
                public void onException(Throwable error) {
                    System.out.println("async failed: " + error);
                    answered.countDown();
                }
            });
        }
        answered.await(30, TimeUnit.SECONDS);
        Clients.pull(topic, counts);
        counts.print("async");
    }

    private static void oneway(String topic, int count) throws Exception {
        Counts counts = new Counts();
        for (Message message : Clients.messages(topic, Clients.bodies(topic, 0, count))) {
            Clients.producer.sendOneway(message);
            counts.sent(new String(message.getBody()));
            Thread.sleep(1);  // a client drops what its socket does not take at once
        }
        Clients.pull(topic, counts);
        counts.print("oneway");
    }

    private static void batch(String topic, int count) throws Exception {
        Counts counts = new Counts();
        for (int from = 0; from < count; from += 20) {
            List<String> bodies = Clients.bodies(topic, from, Math.min(count, from + 20));
            Clients.producer.send(Clients.messages(topic, bodies));
            counts.sent(bodies);
        }
        Clients.pull(topic, counts);
        counts.print("batch");
    }

    /** Bodies that the client compresses. */
    private static void large(String topic, int count) throws Exception {
        Counts counts = new Counts();
        for (String body : Clients.bodies(topic, 0, count / 10)) {
            String longer = body + "-".repeat(100_000);
            Clients.producer.send(new Message(topic, longer.getBytes()));
            counts.sent(longer);
        }
        Clients.pull(topic, counts);
        counts.print("large");
    }

    private static void ordered(String topic, int count) throws Exception {
        Counts counts = new Counts();
        sendOrdered(topic, count, counts);
        Map<Integer, Integer> last = new HashMap<>();
        Clients.pull(topic, counts, message -> checkOrder(message, last, counts));
        counts.print("ordered");
    }

    /** Send count messages, those of a key (n mod 3) to one queue. */
    static void sendOrdered(String topic, int count, Counts counts) throws Exception {
        for (int n = 0; n < count; n++) {
            Message message = new Message(topic, (topic + " " + n).getBytes());
            message.putUserProperty("n", "" + n);
            Clients.producer.send(message, (queues, sent, key) -> queues.get((Integer) key % queues.size()), n % KEYS);
            counts.sent(topic + " " + n);
        }
    }

    static void checkOrder(MessageExt message, Map<Integer, Integer> last, Counts counts) {
        int n = Integer.parseInt(message.getUserProperty("n"));
        Integer before = last.put(n % KEYS, n);
        if (before != null && n != before + KEYS) {
            counts.misplaced();
        }
    }

    /** Message n is committed, rolled back, or left unknown and committed when the broker asks, by n mod 3. */
    private static void transactional(String topic, int count) throws Exception {
        Counts counts = new Counts();
        TransactionMQProducer payer = new TransactionMQProducer("payers");
        payer.setNamesrvAddr(Clients.namesrv);
        payer.setInstanceName("payers");
        payer.setHeartbeatBrokerInterval(1_000);
        payer.setTransactionListener(new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message message, Object number) {
                return LocalTransactionState.values()[(Integer) number % 3];  // commit, roll back, unknown
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                return LocalTransactionState.COMMIT_MESSAGE;
            }
        });
        payer.start();
        for (int n = 0; n < count; n++) {
            payer.sendMessageInTransaction(new Message(topic, (topic + " " + n).getBytes()), n);
            if (n % 3 != 1) {
                counts.sent(topic + " " + n);
            }
        }
        Clients.pull(topic, counts);
        payer.shutdown();
        counts.print("transactional");
    }

    private static void delayed(String topic, int count) throws Exception {
        Counts counts = new Counts();
        for (Message message : Clients.messages(topic, Clients.bodies(topic, 0, count))) {
            message.setDelayTimeLevel(1);
            Clients.producer.send(message);
            counts.sent(new String(message.getBody()));
        }
        Clients.pull(topic, counts, message -> {
            if (System.currentTimeMillis() < message.getBornTimestamp() + DELAY_MS) {
                counts.misplaced();
            }
        });
        counts.print("delayed");
    }

    private static void timed(String topic, int count) throws Exception {
        Counts counts = new Counts();
        long due = System.currentTimeMillis() + 3_000;
        for (Message message : Clients.messages(topic, Clients.bodies(topic, 0, count))) {
            MessageAccessor.putProperty(message, "TIMER_DELIVER_MS", "" + due);  // 4.9 has no name for it
            Clients.producer.send(message);
            counts.sent(new String(message.getBody()));
        }
        Clients.pull(topic, counts, message -> {
            if (System.currentTimeMillis() < due) {
                counts.misplaced();
            }
        });
        counts.print("timed");
    }
}
