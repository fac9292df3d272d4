import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.remoting.RPCHook;

import java.util.HashSet;
import java.util.Set;

/** Sends messages with the official client and reads them back: NAMESRV COUNT [ACCESS_KEY SECRET_KEY]. */
public class JavaRoundTrip {
    public static void main(String[] args) throws Exception {
        Thread.currentThread().setUncaughtExceptionHandler((thread, error) -> {
            error.printStackTrace();
            Runtime.getRuntime().halt(1);  // else the client's own threads keep the process
        });
        int count = Integer.parseInt(args[1]);
        RPCHook keys = args.length < 4 ? null : new AclClientRPCHook(new SessionCredentials(args[2], args[3]));
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer("readers", keys);
        consumer.setNamesrvAddr(args[0]);
        consumer.subscribe("JavaTopic", "*");
        consumer.setConsumeFromWhere(org.apache.rocketmq.common.consumer.ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        DefaultMQProducer producer = new DefaultMQProducer("senders", keys);
        producer.setNamesrvAddr(args[0]);
        producer.start();
        for (int number = 0; number < count; number++) {
            producer.send(new Message("JavaTopic", ("body " + number).getBytes()));
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
