import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

import java.util.HashSet;
import java.util.Set;

/** Sends messages with the official client and reads them back: NAMESRV COUNT. */
public class TlsRoundTrip {
    public static void main(String[] args) throws Exception {
        int count = Integer.parseInt(args[1]);
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer("readers");
        consumer.setNamesrvAddr(args[0]);
        consumer.subscribe("TlsTopic", "*");
        consumer.setConsumeFromWhere(org.apache.rocketmq.common.consumer.ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        DefaultMQProducer producer = new DefaultMQProducer("senders");
        producer.setNamesrvAddr(args[0]);
        producer.start();
        for (int number = 0; number < count; number++) {
            producer.send(new Message("TlsTopic", ("body " + number).getBytes()));
        }
        consumer.start();
        Set<String> got = new HashSet<>();
        for (int turn = 0; turn < 60 && got.size() < count; turn++) {
            for (MessageExt message : consumer.poll(1000)) {
                got.add(new String(message.getBody()));
            }
        }
        System.out.println("got " + got.size());
        consumer.shutdown();
        producer.shutdown();
    }
}
