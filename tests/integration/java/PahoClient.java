import java.util.concurrent.Callable;
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

/** The rounds by Paho's clients: PahoClient HOST PORT VERSION COUNT. */
public final class PahoClient {
    public static void main(String[] args) throws Exception {
        LogManager.getLogManager().reset(); // the client tells of each packet
        String address = "tcp://" + args[0] + ":" + args[1];
        new Rounds(Integer.parseInt(args[3])).run((name, take) ->
                args[2].equals("5") ? connect5(address, name, take) : connect3(address, name, take));
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

    static Rounds.Session connect3(String address, String name, BiConsumer<String, byte[]> take) throws Exception {
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
        return new Rounds.Session() {
            public void subscribe(String filter) throws Exception {
                client.subscribe(filter, 2).waitForCompletion();
            }

            public void publish(String topic, int qos, byte[] body) throws Exception {
                settle(() -> client.publish(topic, body, qos, false)::waitForCompletion);
            }
        };
    }

    static Rounds.Session connect5(String address, String name, BiConsumer<String, byte[]> take) throws Exception {
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
        return new Rounds.Session() {
            public void subscribe(String filter) throws Exception {
                client.subscribe(filter, 2).waitForCompletion();
            }

            public void publish(String topic, int qos, byte[] body) throws Exception {
                settle(() -> client.publish(topic, body, qos, false)::waitForCompletion);
            }
        };
    }
}
