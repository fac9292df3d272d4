import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.stream.Collectors;

/** Runs the scenarios one by one and prints what each counted: NAMESRV COUNT ADMIN. */
public final class Clients {
    private static final int GREET_MS = 60_000;
    static String namesrv;
    static String admin;  // the operators' door
    static DefaultMQProducer producer;
    private static DefaultMQPullConsumer puller;
    private static int made;

    /** A scenario by itself: it prints its counts, or throws. */
    interface Scenario {
        void run(String topic, int count) throws Exception;
    }

    public static void main(String[] args) throws Exception {
        start(args[0]);
        int count = Integer.parseInt(args[1]);
        admin = args[2];
        for (Map<String, Scenario> family : List.of(Sends.SCENARIOS, Consumes.SCENARIOS, Groups.SCENARIOS)) {
            run(family, count);
        }
        Runtime.getRuntime().halt(0);  // the client's own threads would keep the process
    }

    static void start(String address) throws Exception {
        namesrv = address;
        producer = new DefaultMQProducer("senders");
        producer.setNamesrvAddr(namesrv);
        producer.setInstanceName("senders");
        producer.start();
        puller = new DefaultMQPullConsumer("pullers");
        puller.setNamesrvAddr(namesrv);
        puller.setInstanceName("pullers");
        puller.start();
        greet();
    }

    /** Ask for a route until it is told: on a busy machine a new Java's first question takes longer than its client waits. */
    private static void greet() throws Exception {
        long end = System.currentTimeMillis() + GREET_MS;
        while (true) {
            try {
                producer.fetchPublishMessageQueues("TBW102");
                return;
            } catch (Exception error) {
                if (System.currentTimeMillis() > end) {
                    throw error;
                }
            }
        }
    }

    static void run(Map<String, Scenario> scenarios, int count) {
        scenarios.forEach((name, scenario) -> {
            try {
                scenario.run("java-" + name, count);
            } catch (Throwable error) {
                System.out.println(name + " failed: " + error);
                error.printStackTrace();
            }
        });
    }

    static List<String> bodies(String topic, int from, int to) {
        List<String> bodies = new ArrayList<>();
        for (int n = from; n < to; n++) {
            bodies.add(topic + " " + n);
        }
        return bodies;
    }

    static List<Message> messages(String topic, List<String> bodies) {
        return bodies.stream().map(body -> new Message(topic, body.getBytes())).collect(Collectors.toList());
    }

    /** Send these bodies, each waited for, and count them as sent. */
    static void send(String topic, List<String> bodies, Counts counts) throws Exception {
        for (Message message : messages(topic, bodies)) {
            producer.send(message);
            counts.sent(new String(message.getBody()));
        }
    }

    static DefaultMQPushConsumer consumer(String group) {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setNamesrvAddr(namesrv);
        consumer.setInstanceName(ProcessHandle.current().pid() + "-" + made++);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        return consumer;
    }

    /** Pull all queues of a topic from their beginnings until all that was sent is there, and for a while on. */
    static void pull(String topic, Counts counts, Consumer<MessageExt> look) throws Exception {
        long end = System.currentTimeMillis() + 30_000;
        long settled = Long.MAX_VALUE;
        Map<MessageQueue, Long> places = new HashMap<>();
        for (MessageQueue queue : puller.fetchSubscribeMessageQueues(topic)) {
            places.put(queue, 0L);
        }
        while (System.currentTimeMillis() < Math.min(end, settled)) {
            for (MessageQueue queue : places.keySet()) {
                PullResult result = puller.pull(queue, "*", places.get(queue), 32);
                places.put(queue, result.getNextBeginOffset());
                if (result.getMsgFoundList() != null) {
                    result.getMsgFoundList().forEach(message -> {
                        look.accept(message);
                        counts.came(message.getBody());
                    });
                }
            }
            if (counts.complete() && settled == Long.MAX_VALUE) {
                settled = System.currentTimeMillis() + 500;
            }
            Thread.sleep(10);
        }
    }

    static void pull(String topic, Counts counts) throws Exception {
        pull(topic, counts, message -> { });
    }
}
