import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.MessageProperties;
import com.rabbitmq.client.RpcClient;
import com.rabbitmq.client.RpcClientParams;
import com.rabbitmq.client.RpcServer;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;

/** RabbitMQ's Java client against the AMQP door: HOST PORT COUNT; prints a line of counts for each scenario. */
public class AmqpClient {
    interface Scenario {
        void run(Connection connection, List<String> bodies, AtomicInteger wrong) throws Exception;
    }

    static int count;
    static ConnectionFactory factory = new ConnectionFactory();

    public static void main(String[] arguments) throws Exception {
        factory.setHost(arguments[0]);
        factory.setPort(Integer.parseInt(arguments[1]));
        factory.setNetworkRecoveryInterval(200);
        count = Integer.parseInt(arguments[2]);
        tell("confirmed", AmqpClient::confirmed);
        tell("transactional", AmqpClient::transactional);
        tell("got", AmqpClient::got);
        tell("quorum", AmqpClient::quorum);
        tell("dead-letters", AmqpClient::deadLetters);
        tell("rpc", AmqpClient::rpc);
        tell("returned", AmqpClient::returned);
        tell("recovered", AmqpClient::recovered);
        System.exit(0);
    }

    static void tell(String name, Scenario scenario) throws Exception {
        List<String> bodies = new CopyOnWriteArrayList<>();
        AtomicInteger wrong = new AtomicInteger();
        try (Connection connection = factory.newConnection("java-" + name)) {
            scenario.run(connection, bodies, wrong);
            long end = System.currentTimeMillis() + 20_000;
            while (new HashSet<>(bodies).size() < count && System.currentTimeMillis() < end) {
                Thread.sleep(10);
            }
            Thread.sleep(200); // what comes twice
            int seen = new HashSet<>(bodies).size();
            System.out.printf("%s sent=%d received=%d duplicated=%d lost=%d wrong=%d%n",
                name, count, bodies.size(), bodies.size() - seen, count - seen, wrong.get());
        }
    }

    static void publish(Channel channel, String exchange, String key, boolean mandatory) throws Exception {
        for (int i = 0; i < count; i++) {
            channel.basicPublish(exchange, key, mandatory, MessageProperties.PERSISTENT_BASIC, String.valueOf(i).getBytes());
        }
    }

    static void consume(Channel channel, String queue, List<String> bodies) throws Exception {
        channel.basicConsume(queue, false, (tag, message) -> {
            bodies.add(new String(message.getBody()));
            channel.basicAck(message.getEnvelope().getDeliveryTag(), false);
        }, tag -> { });
    }

    static void confirmed(Connection connection, List<String> bodies, AtomicInteger wrong) throws Exception {
        Channel channel = connection.createChannel();
        channel.queueDeclare("java-confirmed", true, false, false, null);
        channel.basicQos(16);
        consume(channel, "java-confirmed", bodies);
        Channel publisher = connection.createChannel();
        publisher.confirmSelect();
        publish(publisher, "", "java-confirmed", false);
        publisher.waitForConfirmsOrDie(20_000);
    }

    static void transactional(Connection connection, List<String> bodies, AtomicInteger wrong) throws Exception {
        Channel channel = connection.createChannel();
        String queue = channel.queueDeclare().getQueue();
        Channel publisher = connection.createChannel();
        publisher.txSelect();
        publisher.basicPublish("", queue, null, "odd".getBytes());
        publisher.txRollback();
        publish(publisher, "", queue, false);
        if (channel.messageCount(queue) != 0) {
            wrong.incrementAndGet();
        }
        publisher.txCommit();
        consume(channel, queue, bodies);
    }

    static void got(Connection connection, List<String> bodies, AtomicInteger wrong) throws Exception {
        Channel channel = connection.createChannel();
        String queue = channel.queueDeclare().getQueue();
        publish(channel, "", queue, false);
        for (int i = 0; i < count; i++) {
            var message = channel.basicGet(queue, false);
            if (message == null || message.getMessageCount() != count - i - 1) {
                wrong.incrementAndGet();
                continue;
            }
            bodies.add(new String(message.getBody()));
            channel.basicAck(message.getEnvelope().getDeliveryTag(), false);
        }
    }

    static void quorum(Connection connection, List<String> bodies, AtomicInteger wrong) throws Exception {
        Channel channel = connection.createChannel();
        channel.queueDeclare("java-quorum", true, false, false, Map.of("x-queue-type", "quorum"));
        publish(channel, "", "java-quorum", false);
        channel.basicConsume("java-quorum", false, (tag, message) -> {
            long number = message.getEnvelope().getDeliveryTag();
            if (!message.getEnvelope().isRedeliver()) {
                channel.basicNack(number, false, true);
                return;
            }
            if (((Number) message.getProperties().getHeaders().get("x-delivery-count")).longValue() != 1) {
                wrong.incrementAndGet();
            }
            bodies.add(new String(message.getBody()));
            channel.basicAck(number, false);
        }, tag -> { });
    }

    static void deadLetters(Connection connection, List<String> bodies, AtomicInteger wrong) throws Exception {
        Channel channel = connection.createChannel();
        String dead = channel.queueDeclare().getQueue();
        Map<String, Object> terms = Map.of(
            "x-dead-letter-exchange", "", "x-dead-letter-routing-key", dead, "x-message-ttl", 50);
        String work = channel.queueDeclare("", false, true, true, terms).getQueue();
        channel.basicConsume(dead, true, (tag, message) -> {
            Object deaths = message.getProperties().getHeaders().get("x-death");
            if (!"expired".equals(((Map<?, ?>) ((List<?>) deaths).get(0)).get("reason").toString())) {
                wrong.incrementAndGet();
            }
            bodies.add(new String(message.getBody()));
        }, tag -> { });
        publish(channel, "", work, false);
    }

    static void rpc(Connection connection, List<String> bodies, AtomicInteger wrong) throws Exception {
        Channel served = connection.createChannel();
        String queue = served.queueDeclare().getQueue();
        RpcServer server = new RpcServer(served, queue) {
            @Override
            public byte[] handleCall(Delivery request, AMQP.BasicProperties properties) {
                return request.getBody();
            }
        };
        Thread thread = new Thread(() -> {
            try {
                server.mainloop();
            } catch (Exception ended) {
                // with its channel
            }
        });
        thread.setDaemon(true);
        thread.start();
        RpcClient client = new RpcClient(new RpcClientParams().channel(connection.createChannel())
            .exchange("").routingKey(queue).timeout(10_000));
        for (int i = 0; i < count; i++) {
            String answer = client.stringCall(String.valueOf(i));
            if (!answer.equals(String.valueOf(i))) {
                wrong.incrementAndGet();
            }
            bodies.add(answer);
        }
        client.close();
    }

    static void returned(Connection connection, List<String> bodies, AtomicInteger wrong) throws Exception {
        Channel channel = connection.createChannel();
        channel.confirmSelect();
        channel.addReturnListener(message -> {
            if (message.getReplyCode() != 312) {
                wrong.incrementAndGet();
            }
            bodies.add(new String(message.getBody()));
        });
        publish(channel, "amq.direct", "nobody", true);
        channel.waitForConfirmsOrDie(20_000);
    }

    /** The client's own recovery: the server closes its connection, and it declares and consumes anew. */
    static void recovered(Connection connection, List<String> bodies, AtomicInteger wrong) throws Exception {
        Channel channel = connection.createChannel();
        channel.queueDeclare("java-recovered", true, false, false, null);
        consume(channel, "java-recovered", bodies);
        Channel faulty = connection.createChannel();
        faulty.basicPublish("", "java-recovered", true, true, null, "odd".getBytes()); // immediate: 540
        long end = System.currentTimeMillis() + 20_000;
        boolean done = false;
        while (!done && System.currentTimeMillis() < end) {
            Thread.sleep(300);
            try (Connection other = factory.newConnection("java-other"); Channel publisher = other.createChannel()) {
                if (publisher.consumerCount("java-recovered") == 1 && channel.isOpen()) {
                    publisher.confirmSelect();
                    publish(publisher, "", "java-recovered", false);
                    publisher.waitForConfirmsOrDie(20_000);
                    done = true;
                }
            }
        }
        if (!done) {
            wrong.incrementAndGet();
        }
    }
}
