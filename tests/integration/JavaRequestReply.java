import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Asks with the official client and answers with it: NAMESRV COUNT. */
public class JavaRequestReply {
    public static void main(String[] args) throws Exception {
        Thread.currentThread().setUncaughtExceptionHandler((thread, error) -> {
            error.printStackTrace();
            Runtime.getRuntime().halt(1);  // else the client's own threads keep the process
        });
        DefaultMQProducer replier = new DefaultMQProducer("repliers");
        replier.setNamesrvAddr(args[0]);
        replier.setInstanceName("replier");
        replier.start();
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("answerers");
        consumer.setNamesrvAddr(args[0]);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe("Questions", "ask");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                try {
                    byte[] body = ("re: " + new String(message.getBody())).getBytes();
                    replier.send(MessageUtil.createReplyMessage(message, body), 3000);
                } catch (Exception error) {
                    throw new RuntimeException(error);
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        DefaultMQProducer asker = new DefaultMQProducer("askers");
        asker.setNamesrvAddr(args[0]);
        asker.setInstanceName("asker");
        asker.start();
        asker.send(new Message("Questions", "makes the topic".getBytes()));
        consumer.start();
        for (int number = 0; number < Integer.parseInt(args[1]); number++) {
            Message got = asker.request(new Message("Questions", "ask", ("question " + number).getBytes()), 30_000);
            System.out.println("got " + new String(got.getBody()));
        }
        Runtime.getRuntime().halt(0);
    }
}
