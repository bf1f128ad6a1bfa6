// Kafka's own reading of our bytes. Each line of standard input is one question, each answer one line:
//   read <api key> <version> <Request|Response> <hex>   the same message written by Kafka after reading it
//   default <api key> <version> <Request|Response>      a fresh message, or "none" where Kafka cannot write that

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.MessageUtil;

public class CodecReferee {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        StringBuilder out = new StringBuilder();
        for (String line = in.readLine(); line != null; line = in.readLine())
            out.append(answer(line.split(" "))).append("\n");
        System.out.print(out);
    }

    static String answer(String[] question) {
        ApiMessageType api = ApiMessageType.fromApiKey(Short.parseShort(question[1]));
        short version = Short.parseShort(question[2]);
        ApiMessage message = question[3].equals("Request") ? api.newRequest() : api.newResponse();
        if (question[0].equals("default")) {
            try {
                return written(message, version);
            } catch (NullPointerException nothingToWrite) {
                return "none";
            }
        }
        ByteBuffer bytes = ByteBuffer.wrap(HexFormat.of().parseHex(question.length > 4 ? question[4] : ""));
        try {
            message.read(new ByteBufferAccessor(bytes), version);
            return bytes.hasRemaining() ? bytes.remaining() + " bytes left" : written(message, version);
        } catch (RuntimeException refused) {
            return "refused: " + refused;
        }
    }

    static String written(ApiMessage message, short version) {
        ByteBuffer bytes = MessageUtil.toByteBufferAccessor(message, version).buffer();
        byte[] copy = new byte[bytes.remaining()];
        bytes.get(copy);
        return HexFormat.of().formatHex(copy);
    }
}
