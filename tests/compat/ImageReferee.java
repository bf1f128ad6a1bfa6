// Kafka's own reading of our metadata log. Each line of standard input is a record in hex, a dot ends a log; the
// answer to a log is one line for every partition and broker of Kafka's image of it, sorted, and a dot.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.TreeSet;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.metadata.PartitionRegistration;

public class ImageReferee {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        MetadataDelta delta = fresh();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (line.equals(".")) {
                print(delta.apply(new MetadataProvenance(1, 1, 1, true)));
                delta = fresh();
            } else {
                byte[] bytes = HexFormat.of().parseHex(line);
                ByteBufferAccessor readable = new ByteBufferAccessor(ByteBuffer.wrap(bytes));
                delta.replay(MetadataRecordSerde.INSTANCE.read(readable, bytes.length).message());
            }
        }
    }

    static MetadataDelta fresh() {
        return new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
    }

    static void print(MetadataImage image) {
        TreeSet<String> lines = new TreeSet<>();
        image.topics().topicsById().forEach((id, topic) ->
            topic.partitions().forEach((index, partition) -> lines.add(topic.name() + "-" + index + " " + told(partition))));
        image.cluster().brokers().forEach((id, broker) ->
            lines.add("broker-" + id + " " + broker.epoch() + " " + broker.fenced() + " " + broker.inControlledShutdown()));
        lines.forEach(System.out::println);
        System.out.println(".");
    }

    static String told(PartitionRegistration partition) {
        return Arrays.toString(partition.replicas) + Arrays.toString(partition.isr) + Arrays.toString(partition.elr)
            + Arrays.toString(partition.lastKnownElr) + Arrays.toString(partition.addingReplicas)
            + Arrays.toString(partition.removingReplicas) + Arrays.toString(partition.directories) + " " + partition.leader
            + " " + partition.leaderEpoch + " " + partition.partitionEpoch + " " + partition.leaderRecoveryState;
    }
}
