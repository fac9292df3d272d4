import com.hivemq.client.mqtt.MqttClient;
import com.hivemq.client.mqtt.MqttClientBuilder;
import com.hivemq.client.mqtt.MqttGlobalPublishFilter;
import com.hivemq.client.mqtt.datatypes.MqttQos;
import com.hivemq.client.mqtt.mqtt3.Mqtt3AsyncClient;
import com.hivemq.client.mqtt.mqtt5.Mqtt5AsyncClient;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;

/** The rounds by HiveMQ's client: HiveMqClient HOST PORT VERSION COUNT. */
public final class HiveMqClient {
    public static void main(String[] args) throws Exception {
        new Rounds(Integer.parseInt(args[3])).run((name, take) -> {
            MqttClientBuilder builder = MqttClient.builder()
                    .identifier(name)
                    .serverHost(args[0])
                    .serverPort(Integer.parseInt(args[1]))
                    .automaticReconnect()
                    .initialDelay(50, TimeUnit.MILLISECONDS)
                    .maxDelay(200, TimeUnit.MILLISECONDS)
                    .applyAutomaticReconnect();
            return args[2].equals("5") ? connect5(builder, take) : connect3(builder, take);
        });
    }

    static Rounds.Session connect5(MqttClientBuilder builder, BiConsumer<String, byte[]> take) {
        Mqtt5AsyncClient client = builder.useMqttVersion5().buildAsync();
        client.publishes(MqttGlobalPublishFilter.ALL,
                one -> take.accept(one.getTopic().toString(), one.getPayloadAsBytes()));
        client.connectWith().cleanStart(false).sessionExpiryInterval(600).send().join();
        return new Rounds.Session() {
            public void subscribe(String filter) {
                client.subscribeWith().topicFilter(filter).qos(MqttQos.EXACTLY_ONCE).send().join();
            }

            public void publish(String topic, int qos, byte[] body) {
                client.publishWith().topic(topic).qos(MqttQos.fromCode(qos)).payload(body).send().join();
            }
        };
    }

    static Rounds.Session connect3(MqttClientBuilder builder, BiConsumer<String, byte[]> take) {
        Mqtt3AsyncClient client = builder.useMqttVersion3().buildAsync();
        client.publishes(MqttGlobalPublishFilter.ALL,
                one -> take.accept(one.getTopic().toString(), one.getPayloadAsBytes()));
        client.connectWith().cleanSession(false).send().join();
        return new Rounds.Session() {
            public void subscribe(String filter) {
                client.subscribeWith().topicFilter(filter).qos(MqttQos.EXACTLY_ONCE).send().join();
            }

            public void publish(String topic, int qos, byte[] body) {
                client.publishWith().topic(topic).qos(MqttQos.fromCode(qos)).payload(body).send().join();
            }
        };
    }
}
