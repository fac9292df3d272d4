import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;

import java.util.LinkedHashMap;
import java.util.Map;

/** The ways to consume by oneself. Half of the messages are there before the consumer is. */
final class Consumes {
    static final Map<String, Clients.Scenario> SCENARIOS = new LinkedHashMap<>();

    static {
        SCENARIOS.put("pull", Consumes::pull);
        SCENARIOS.put("lite-pull", Consumes::litePull);
        SCENARIOS.put("push", Consumes::push);
        SCENARIOS.put("tag", Consumes::tag);
        SCENARIOS.put("sql", Consumes::sql);
        SCENARIOS.put("light-queue", Consumes::lightQueue);
    }

    private Consumes() { }

    private static void pull(String topic, int count) throws Exception {
        Counts counts = new Counts();
        Clients.send(topic, Clients.bodies(topic, 0, count), counts);
        Clients.pull(topic, counts);
        counts.print("pull");
    }

    private static void litePull(String topic, int count) throws Exception {
        Counts counts = new Counts();
        Clients.send(topic, Clients.bodies(topic, 0, count / 2), counts);
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer(topic);
        consumer.setNamesrvAddr(Clients.namesrv);
        consumer.setInstanceName("lite");
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        consumer.start();
        Clients.send(topic, Clients.bodies(topic, count / 2, count), counts);
        long end = System.currentTimeMillis() + 30_000;
        while (!counts.complete() && System.currentTimeMillis() < end) {
            consumer.poll(200).forEach(message -> counts.came(message.getBody()));
        }
        consumer.poll(500).forEach(message -> counts.came(message.getBody()));
        consumer.shutdown();
        counts.print("lite-pull");
    }

    private static void push(String topic, int count) throws Exception {
        Counts counts = new Counts();
        Clients.send(topic, Clients.bodies(topic, 0, count / 2), counts);
        DefaultMQPushConsumer consumer = Clients.consumer(topic);
        consumer.subscribe(topic, "*");
        take(consumer, counts);
        Clients.send(topic, Clients.bodies(topic, count / 2, count), counts);
        counts.await();
        consumer.shutdown();
        counts.print("push");
    }

    private static void tag(String topic, int count) throws Exception {
        filtered("tag", topic, count, MessageSelector.byTag("a || c"));
    }

    /** A filter that is none is refused at the start of its consumer. */
    private static void sql(String topic, int count) throws Exception {
        filtered("sql", topic, count, MessageSelector.bySql("TAGS IN ('a', 'c') AND n BETWEEN 0 AND 1000000 AND x IS NULL"));
        DefaultMQPushConsumer refused = Clients.consumer(topic + "-refused");
        refused.subscribe(topic, MessageSelector.bySql("n >"));
        try {
            take(refused, new Counts());
            throw new AssertionError("a filter that is none was taken");
        } catch (MQClientException error) {
            if (!error.getMessage().contains("unexpected the end at column 4")) {
                throw error;
            }
        }
        refused.shutdown();
    }

    /** Tags a, b and c in turn; those with b are not wanted. */
    private static void filtered(String name, String topic, int count, MessageSelector selector) throws Exception {
        Counts counts = new Counts();
        DefaultMQPushConsumer consumer = Clients.consumer(topic);
        for (int n = 0; n < count; n++) {
            String tag = "abc".substring(n % 3, n % 3 + 1);
            Message message = new Message(topic, tag, (topic + " " + n).getBytes());
            message.putUserProperty("n", "" + n);
            Clients.producer.send(message);
            if (!tag.equals("b")) {
                counts.sent(topic + " " + n);
            }
            if (n == count / 2) {
                consumer.subscribe(topic, selector);
                take(consumer, counts);
            }
        }
        counts.await();
        consumer.shutdown();
        counts.print(name);
    }

    /** Messages of a topic that name two light queues besides; one of these is pulled by its name. */
    private static void lightQueue(String topic, int count) throws Exception {
        Counts counts = new Counts();
        for (Message message : Clients.messages(topic, Clients.bodies(topic, 0, count))) {
            MessageAccessor.putProperty(message, "INNER_MULTI_DISPATCH", "%LMQ%java-audit,%LMQ%java-copy");
            Clients.producer.send(message);
            counts.sent(new String(message.getBody()));
        }
        Clients.pull("%LMQ%java-audit", counts);
        counts.print("light-queue");
    }

    private static void take(DefaultMQPushConsumer consumer, Counts counts) throws Exception {
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(message -> counts.came(message.getBody()));
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
    }
}
