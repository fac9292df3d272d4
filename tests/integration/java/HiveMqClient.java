// Publishes and subscribes by HiveMQ's client, and counts what came: HiveMqClient HOST PORT VERSION COUNT
//
// Between the lines "cut me" and "done" the connections may be cut: the client comes back by itself.

import com.hivemq.client.mqtt.MqttClient;
import com.hivemq.client.mqtt.MqttClientBuilder;
import com.hivemq.client.mqtt.MqttGlobalPublishFilter;
import com.hivemq.client.mqtt.datatypes.MqttQos;
import com.hivemq.client.mqtt.mqtt3.Mqtt3AsyncClient;
import com.hivemq.client.mqtt.mqtt5.Mqtt5AsyncClient;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;

public class HiveMqClient {
    /** One client of either version, which comes back by itself. */
    interface Session {
        void subscribe(String filter);

        CompletableFuture<?> publish(String topic, int qos, String body);
    }

    static final List<Map<String, Integer>> GOT = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        int count = Integer.parseInt(args[3]);
        for (int qos = 0; qos < 3; qos++) {
            GOT.add(new ConcurrentHashMap<>());
        }
        Session subscriber = connect(args, "java-subscriber", HiveMqClient::take);
        subscriber.subscribe("java/#");
        Session publisher = connect(args, "java-publisher", (topic, body) -> {});
        for (int number = 0; number < count; number++) {
            publisher.publish("java/0/" + number % 7, 0, "" + number).get();
        }
        until(count, 10, 0);
        System.out.println("cut me");
        for (int number = 0; number < count; number++) {
            for (int qos = 1; qos < 3; qos++) {
                publisher.publish("java/" + qos + "/" + number % 7, qos, "" + number).get();
            }
        }
        until(count, 30, 1, 2);
        for (int qos = 0; qos < 3; qos++) {
            int received = GOT.get(qos).values().stream().mapToInt(Integer::intValue).sum();
            int distinct = GOT.get(qos).size();
            System.out.printf("qos=%d sent=%d received=%d duplicated=%d lost=%d%n",
                    qos, count, received, received - distinct, count - distinct);
        }
        System.out.println("done");
        System.exit(0);
    }

    static void take(String topic, byte[] body) {
        GOT.get(Integer.parseInt(topic.split("/")[1])).merge(new String(body, StandardCharsets.UTF_8), 1, Integer::sum);
    }

    static void until(int count, int seconds, int... levels) throws InterruptedException {
        for (int tries = 0; tries < seconds * 50; tries++) {
            boolean hasAll = true;
            for (int qos : levels) {
                hasAll = hasAll && GOT.get(qos).size() == count;
            }
            if (hasAll) {
                return;
            }
            Thread.sleep(20);
        }
    }

    static Session connect(String[] args, String name, BiConsumer<String, byte[]> take) {
        MqttClientBuilder builder = MqttClient.builder()
                .identifier(name)
                .serverHost(args[0])
                .serverPort(Integer.parseInt(args[1]))
                .automaticReconnect()
                .initialDelay(50, TimeUnit.MILLISECONDS)
                .maxDelay(200, TimeUnit.MILLISECONDS)
                .applyAutomaticReconnect();
        return args[2].equals("5") ? connect5(builder, take) : connect3(builder, take);
    }

    static Session connect5(MqttClientBuilder builder, BiConsumer<String, byte[]> take) {
        Mqtt5AsyncClient client = builder.useMqttVersion5().buildAsync();
        client.publishes(MqttGlobalPublishFilter.ALL,
                one -> take.accept(one.getTopic().toString(), one.getPayloadAsBytes()));
        client.connectWith().cleanStart(false).sessionExpiryInterval(600).send().join();
        return new Session() {
            public void subscribe(String filter) {
                client.subscribeWith().topicFilter(filter).qos(MqttQos.EXACTLY_ONCE).send().join();
            }

            public CompletableFuture<?> publish(String topic, int qos, String body) {
                byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
                return client.publishWith().topic(topic).qos(MqttQos.fromCode(qos)).payload(bytes).send();
            }
        };
    }

    static Session connect3(MqttClientBuilder builder, BiConsumer<String, byte[]> take) {
        Mqtt3AsyncClient client = builder.useMqttVersion3().buildAsync();
        client.publishes(MqttGlobalPublishFilter.ALL,
                one -> take.accept(one.getTopic().toString(), one.getPayloadAsBytes()));
        client.connectWith().cleanSession(false).send().join();
        return new Session() {
            public void subscribe(String filter) {
                client.subscribeWith().topicFilter(filter).qos(MqttQos.EXACTLY_ONCE).send().join();
            }

            public CompletableFuture<?> publish(String topic, int qos, String body) {
                byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
                return client.publishWith().topic(topic).qos(MqttQos.fromCode(qos)).payload(bytes).send();
            }
        };
    }
}
