// Publishes and subscribes by Paho's clients, and counts what came: PahoClient HOST PORT VERSION COUNT
//
// Between the lines "cut me" and "done" the connections may be cut: the client comes back by itself.

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiConsumer;
import java.util.logging.LogManager;
import org.eclipse.paho.client.mqttv3.DisconnectedBufferOptions;
import org.eclipse.paho.client.mqttv3.IMqttDeliveryToken;
import org.eclipse.paho.client.mqttv3.MqttAsyncClient;
import org.eclipse.paho.client.mqttv3.MqttCallback;
import org.eclipse.paho.client.mqttv3.MqttConnectOptions;
import org.eclipse.paho.client.mqttv3.MqttMessage;
import org.eclipse.paho.client.mqttv3.persist.MemoryPersistence;
import org.eclipse.paho.mqttv5.client.IMqttToken;
import org.eclipse.paho.mqttv5.client.MqttConnectionOptions;
import org.eclipse.paho.mqttv5.client.MqttDisconnectResponse;
import org.eclipse.paho.mqttv5.common.packet.MqttProperties;

public class PahoClient {
    /** One client of either version, which comes back by itself. */
    interface Session {
        void subscribe(String filter) throws Exception;

        /** Publish, and return when that is over. */
        void publish(String topic, int qos, String body) throws Exception;
    }

    static final List<Map<String, Integer>> GOT = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        LogManager.getLogManager().reset(); // the client tells of each packet
        int count = Integer.parseInt(args[3]);
        for (int qos = 0; qos < 3; qos++) {
            GOT.add(new ConcurrentHashMap<>());
        }
        Session subscriber = connect(args, "paho-java-subscriber", PahoClient::take);
        subscriber.subscribe("paho/#");
        Session publisher = connect(args, "paho-java-publisher", (topic, body) -> {});
        for (int number = 0; number < count; number++) {
            publisher.publish("paho/0/" + number % 7, 0, "" + number);
        }
        until(count, 10, 0);
        System.out.println("cut me");
        for (int number = 0; number < count; number++) {
            for (int qos = 1; qos < 3; qos++) {
                publisher.publish("paho/" + qos + "/" + number % 7, qos, "" + number);
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

    interface Waiting {
        void run() throws Exception;
    }

    /** Have the client take a message, however often it has to be asked, and wait until it is through, or cut off. */
    static void settle(Callable<Waiting> publish) throws InterruptedException {
        Waiting waiting = null;
        while (waiting == null) {
            try {
                waiting = publish.call();
            } catch (Exception notTaken) {
                Thread.sleep(20);
            }
        }
        try {
            waiting.run();
        } catch (Exception cutOff) {
            Thread.sleep(20); // the client sends it again by itself when it is back
        }
    }

    static Session connect(String[] args, String name, BiConsumer<String, byte[]> take) throws Exception {
        String address = "tcp://" + args[0] + ":" + args[1];
        return args[2].equals("5") ? connect5(address, name, take) : connect3(address, name, take);
    }

    static Session connect3(String address, String name, BiConsumer<String, byte[]> take) throws Exception {
        MqttAsyncClient client = new MqttAsyncClient(address, name, new MemoryPersistence());
        client.setCallback(new MqttCallback() {
            public void connectionLost(Throwable cause) {}

            public void messageArrived(String topic, MqttMessage message) {
                take.accept(topic, message.getPayload());
            }

            public void deliveryComplete(IMqttDeliveryToken token) {}
        });
        DisconnectedBufferOptions buffer = new DisconnectedBufferOptions();
        buffer.setBufferEnabled(true);
        client.setBufferOpts(buffer);
        MqttConnectOptions options = new MqttConnectOptions();
        options.setCleanSession(false);
        options.setAutomaticReconnect(true);
        options.setMaxReconnectDelay(1_000);
        client.connect(options).waitForCompletion();
        return new Session() {
            public void subscribe(String filter) throws Exception {
                client.subscribe(filter, 2).waitForCompletion();
            }

            public void publish(String topic, int qos, String body) throws Exception {
                byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
                settle(() -> client.publish(topic, bytes, qos, false)::waitForCompletion);
            }
        };
    }

    static Session connect5(String address, String name, BiConsumer<String, byte[]> take) throws Exception {
        var client = new org.eclipse.paho.mqttv5.client.MqttAsyncClient(
                address, name, new org.eclipse.paho.mqttv5.client.persist.MemoryPersistence());
        client.setCallback(new org.eclipse.paho.mqttv5.client.MqttCallback() {
            public void disconnected(MqttDisconnectResponse response) {}

            public void mqttErrorOccurred(org.eclipse.paho.mqttv5.common.MqttException error) {}

            public void messageArrived(String topic, org.eclipse.paho.mqttv5.common.MqttMessage message) {
                take.accept(topic, message.getPayload());
            }

            public void deliveryComplete(IMqttToken token) {}

            public void connectComplete(boolean isReconnect, String uri) {}

            public void authPacketArrived(int reasonCode, MqttProperties properties) {}
        });
        var buffer = new org.eclipse.paho.mqttv5.client.DisconnectedBufferOptions();
        buffer.setBufferEnabled(true);
        client.setBufferOpts(buffer);
        MqttConnectionOptions options = new MqttConnectionOptions();
        options.setCleanStart(false);
        options.setSessionExpiryInterval(600L);
        options.setAutomaticReconnect(true);
        options.setAutomaticReconnectDelay(1, 1);
        client.connect(options).waitForCompletion();
        return new Session() {
            public void subscribe(String filter) throws Exception {
                client.subscribe(filter, 2).waitForCompletion();
            }

            public void publish(String topic, int qos, String body) throws Exception {
                byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
                settle(() -> client.publish(topic, bytes, qos, false)::waitForCompletion);
            }
        };
    }
}
