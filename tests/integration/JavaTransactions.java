import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Sends messages in transactions with the official client: NAMESRV COUNT CHECKS HALTS.
 *
 * All are left unknown; what is asked about is committed. With HALTS the process ends within the last one's transaction.
 * It waits until CHECKS messages were asked about.
 */
public class JavaTransactions {
    public static void main(String[] args) throws Exception {
        int count = Integer.parseInt(args[1]);
        int checks = Integer.parseInt(args[2]);
        boolean halts = Boolean.parseBoolean(args[3]);
        Set<String> checked = ConcurrentHashMap.newKeySet();
        TransactionMQProducer producer = new TransactionMQProducer("payers");
        producer.setNamesrvAddr(args[0]);
        producer.setTopics(List.of("Paid"));  // whose brokers it is known to before it sends anything
        producer.setHeartbeatBrokerInterval(1000);
        producer.setTransactionListener(new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message message, Object number) {
                if (halts && (Integer) number == count - 1) {
                    System.out.println("halted");
                    System.out.flush();
                    Runtime.getRuntime().halt(0);
                }
                return null;  // unknown
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                checked.add(new String(message.getBody()));
                return LocalTransactionState.COMMIT_MESSAGE;
            }
        });
        producer.start();
        for (int n = 0; n < count; n++) {
            producer.sendMessageInTransaction(new Message("Paid", "tag", "key" + n, ("body " + n).getBytes()), n);
        }
        for (int turn = 0; turn < 300 && checked.size() < checks; turn++) {
            Thread.sleep(100);
        }
        Thread.sleep(500);  // for the last answer, which is one-way
        System.out.println("checked " + checked.size());
        producer.shutdown();
    }
}
