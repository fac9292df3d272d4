import org.apache.rocketmq.tools.command.MQAdminStartup;

/** Runs commands of mqadmin, one an argument, its words apart by blanks; before each is a line that begins with "==". */
public class JavaTools {
    public static void main(String[] args) {
        for (String line : args) {
            System.out.println("\n== " + line);
            MQAdminStartup.main0(line.split(" "), null);
        }
        Runtime.getRuntime().halt(0);
    }
}
