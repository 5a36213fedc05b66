package dev.trommel.kafka;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.Map;
import org.apache.kafka.streams.query.Position;

/** Values of meta rows as bytes. */
final class Numbers {
    private Numbers() {}

    static byte[] bytes(long number) {
        return ByteBuffer.allocate(Long.BYTES).putLong(number).array();
    }

    static long read(byte[] bytes) {
        return ByteBuffer.wrap(bytes).getLong();
    }

    /** A position: count of topics; of each its name, count of partitions, numbers and offsets. */
    static byte[] bytes(Position position) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (DataOutputStream out = new DataOutputStream(bytes)) {
            Position fixed = position.copy();
            out.writeInt(fixed.getTopics().size());
            for (String topic : fixed.getTopics()) {
                Map<Integer, Long> partitions = fixed.getPartitionPositions(topic);
                out.writeUTF(topic);
                out.writeInt(partitions.size());
                for (Map.Entry<Integer, Long> partition : partitions.entrySet()) {
                    out.writeInt(partition.getKey());
                    out.writeLong(partition.getValue());
                }
            }
        } catch (IOException problem) {
            throw new UncheckedIOException(problem);
        }
        return bytes.toByteArray();
    }

    static Position position(byte[] bytes) {
        Position position = Position.emptyPosition();
        if (bytes == null) {
            return position;
        }
        try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes))) {
            for (int topics = in.readInt(); topics > 0; topics--) {
                String topic = in.readUTF();
                for (int partitions = in.readInt(); partitions > 0; partitions--) {
                    position.withComponent(topic, in.readInt(), in.readLong());
                }
            }
        } catch (IOException problem) {
            throw new UncheckedIOException("a stored position is cut short", problem);
        }
        return position;
    }
}
