import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/** Consumers that fail, keep an order, or share. */
final class Groups {
    static final Map<String, Clients.Scenario> SCENARIOS = new LinkedHashMap<>();
    private static final int RETRIES = 2;

    static {
        SCENARIOS.put("orderly", Groups::orderly);
        SCENARIOS.put("broadcasting", Groups::broadcasting);
        SCENARIOS.put("retry", Groups::retry);
        SCENARIOS.put("dead-letters", Groups::deadLetters);
        SCENARIOS.put("sent-back", Groups::sentBack);
        SCENARIOS.put("rebalance", Groups::rebalance);
    }

    private Groups() { }

    /** Each seventh message fails once, and holds up its queue. */
    private static void orderly(String topic, int count) throws Exception {
        Counts counts = new Counts();
        Sends.sendOrdered(topic, count, counts);
        DefaultMQPushConsumer consumer = Clients.consumer(topic);
        consumer.subscribe(topic, "*");
        consumer.setConsumeMessageBatchMaxSize(1);
        consumer.setSuspendCurrentQueueTimeMillis(50);
        Map<Integer, Integer> last = new ConcurrentHashMap<>();
        Set<String> failed = ConcurrentHashMap.newKeySet();
        consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            String n = messages.get(0).getUserProperty("n");
            if (Integer.parseInt(n) % 7 == 0 && failed.add(n)) {
                return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
            }
            Sends.checkOrder(messages.get(0), last, counts);
            counts.came(messages.get(0).getBody());
            return ConsumeOrderlyStatus.SUCCESS;
        });
        consumer.start();
        counts.await();
        consumer.shutdown();
        counts.print("orderly");
    }

    /** Two consumers, each of which is to get all. */
    private static void broadcasting(String topic, int count) throws Exception {
        Counts counts = new Counts();
        Clients.send(topic, Clients.bodies(topic, 0, 1), new Counts());
        DefaultMQPushConsumer[] consumers = new DefaultMQPushConsumer[2];
        for (int which = 0; which < consumers.length; which++) {
            String suffix = "/" + which;
            DefaultMQPushConsumer consumer = consumers[which] = Clients.consumer(topic);
            consumer.setMessageModel(  // its package is another one in 5
                Enum.valueOf(consumer.getMessageModel().getDeclaringClass(), "BROADCASTING"));
            consumer.subscribe(topic, "*");
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                messages.forEach(message -> counts.came((new String(message.getBody()) + suffix).getBytes()));
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
            consumer.start();
            counts.sent(topic + " 0" + suffix);
        }
        Clients.send(topic, Clients.bodies(topic, 1, count), new Counts());
        for (String body : Clients.bodies(topic, 1, count)) {
            counts.sent(List.of(body + "/0", body + "/1"));
        }
        counts.await();
        for (DefaultMQPushConsumer consumer : consumers) {
            consumer.shutdown();
        }
        counts.print("broadcasting");
    }

    /** Each message fails at its first attempt and comes again after level 3, as the broker has it. */
    private static void retry(String topic, int count) throws Exception {
        Counts counts = new Counts();
        Clients.send(topic, Clients.bodies(topic, 0, count), counts);
        DefaultMQPushConsumer consumer = Clients.consumer(topic);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            if (messages.get(0).getReconsumeTimes() == 0) {
                return ConsumeConcurrentlyStatus.RECONSUME_LATER;
            }
            messages.forEach(message -> {
                counts.came(message.getBody());
                if (message.getReconsumeTimes() != 1 || !message.getTopic().equals(topic)) {
                    counts.misplaced();
                }
            });
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        counts.await();
        consumer.shutdown();
        counts.print("retry");
    }

    /** Each message fails as often as it may, and is counted among the group's dead letters. */
    private static void deadLetters(String topic, int count) throws Exception {
        Counts counts = new Counts();
        Clients.send(topic, Clients.bodies(topic, 0, count), counts);
        AtomicInteger attempts = new AtomicInteger();
        DefaultMQPushConsumer consumer = Clients.consumer(topic);
        consumer.subscribe(topic, "*");
        consumer.setMaxReconsumeTimes(RETRIES);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            attempts.addAndGet(messages.size());
            return ConsumeConcurrentlyStatus.RECONSUME_LATER;
        });
        consumer.start();
        long end = System.currentTimeMillis() + 45_000;
        while (attempts.get() < count * (RETRIES + 1) && System.currentTimeMillis() < end) {
            Thread.sleep(20);
        }
        Thread.sleep(1_000);  // the last ones are sent back
        Clients.pull("%DLQ%" + topic, counts);
        consumer.shutdown();
        for (int more = count * (RETRIES + 1); more < attempts.get(); more++) {
            counts.misplaced();
        }
        counts.print("dead-letters");
    }

    /** Each message is given up at once; then an operator sends all letters back, and the group has each as if new. */
    private static void sentBack(String topic, int count) throws Exception {
        Counts counts = new Counts();
        Clients.send(topic, Clients.bodies(topic, 0, count), counts);
        AtomicInteger failures = new AtomicInteger();
        AtomicBoolean isWell = new AtomicBoolean();
        DefaultMQPushConsumer consumer = Clients.consumer(topic);
        consumer.subscribe(topic, "*");
        consumer.setMaxReconsumeTimes(0);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            if (!isWell.get()) {
                failures.addAndGet(messages.size());
                return ConsumeConcurrentlyStatus.RECONSUME_LATER;
            }
            messages.forEach(message -> {
                counts.came(message.getBody());
                if (message.getReconsumeTimes() != 0 || !message.getTopic().equals(topic)) {
                    counts.misplaced();
                }
            });
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        long end = System.currentTimeMillis() + 45_000;
        while (failures.get() < count && System.currentTimeMillis() < end) {
            Thread.sleep(20);
        }
        Thread.sleep(1_000);  // the last ones are sent to the letters
        isWell.set(true);
        sendBack(topic, count);
        counts.await();
        consumer.shutdown();
        counts.print("sent-back");
    }

    /** Ask the operators' door to send a group's letters back, of which there are so many. */
    private static void sendBack(String group, int count) throws Exception {
        String login = Base64.getEncoder().encodeToString("guest:guest".getBytes());
        String wanted = "{\"door\": \"rocketmq\", \"source\": \"%DLQ%" + group + "\", \"count\": 10000}";
        HttpRequest request = HttpRequest.newBuilder(URI.create("http://" + Clients.admin + "/api/lmq/move"))
            .header("Authorization", "Basic " + login).header("Content-Type", "application/json")
            .POST(HttpRequest.BodyPublishers.ofString(wanted)).build();
        String said = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString()).body();
        if (!said.replace(" ", "").contains("\"moved\":" + count + ",\"left\":0")) {
            throw new IllegalStateException(said);
        }
    }

    /** Two members of a group in two processes; one is killed while messages come, and the other takes over. */
    private static void rebalance(String topic, int count) throws Exception {
        Counts counts = new Counts();
        Counts others = new Counts();
        Clients.send(topic, Clients.bodies(topic, 0, count / 4), counts);
        Process other = new ProcessBuilder(System.getProperty("java.home") + "/bin/java",
            "-Duser.home=" + System.getProperty("user.home"), "-cp", System.getProperty("java.class.path"), "Member",
            Clients.namesrv, topic).redirectError(ProcessBuilder.Redirect.DISCARD).start();
        Thread reading = new Thread(() -> new BufferedReader(new InputStreamReader(other.getInputStream())).lines()
            .filter(line -> line.startsWith(topic)).forEach(line -> {
                others.came(line.getBytes());
                counts.came(line.getBytes());
            }));
        reading.start();
        long end = System.currentTimeMillis() + 45_000;
        while (others.size() < count / 4 && System.currentTimeMillis() < end) {
            Thread.sleep(20);
        }
        DefaultMQPushConsumer consumer = Member.start(topic, counts::came);
        for (int n = count / 4; n < count; n++) {
            Clients.send(topic, Clients.bodies(topic, n, n + 1), counts);
            Thread.sleep(4);
            if (n == count / 2) {
                other.destroyForcibly();
            }
        }
        reading.join();
        counts.await();
        consumer.shutdown();
        System.out.println("# of rebalance: the killed one had " + others.size());
        counts.print("rebalance");
    }
}
