import io.aeron.cluster.NodeStateFile;
import io.aeron.cluster.RecordingLog;
import io.aeron.cluster.codecs.mark.ClusterComponentType;
import io.aeron.cluster.service.ClusterMarkFile;
import org.agrona.ExpandableArrayBuffer;
import org.agrona.MutableDirectBuffer;

import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HexFormat;

/**
 * The reference's codecs and recording log, driven by lines.
 *
 * <pre>
 * messages           reads: message NAME | field NAME NUMBER | text NAME VALUE | data NAME HEX | group NAME COUNT | next
 *                    | end of group | end; prints the bytes of each message
 * entries DIR        prints the entries of a recording log
 * make DIR           makes one with terms, snapshots, a snapshot of a standby, and an invalid snapshot
 * invalidate DIR     invalidates the latest snapshot, and prints the entries
 * mark DIR           makes the mark file of a consensus module
 * vote DIR TERM      notes a vote in the node-state file, and prints it
 * votes DIR          prints what the file says
 * </pre>
 */
public class ClusterFiles {
    public static void main(final String[] args) throws Exception {
        if (args[0].equals("messages")) {
            messages();
            return;
        }
        if (args[0].equals("mark")) {
            mark(new File(args[1]));
            return;
        }
        if (args[0].startsWith("vote")) {
            try (NodeStateFile state = new NodeStateFile(new File(args[1]), args[0].equals("vote"), 1)) {
                if (args[0].equals("vote")) {
                    state.updateCandidateTermId(Long.parseLong(args[2]), 640, 1_700_000_000_000L);
                }
                System.out.println(state.candidateTerm().candidateTermId() + " " + state.candidateTerm().timestamp()
                    + " " + state.candidateTerm().logPosition());
            }
            return;
        }
        try (RecordingLog log = new RecordingLog(new File(args[1]), args[0].equals("make"))) {
            if (args[0].equals("make")) {
                make(log);
            } else if (args[0].equals("invalidate")) {
                log.invalidateLatestSnapshot();
            }
            for (final RecordingLog.Entry entry : log.entries()) {
                System.out.println(
                    entry.recordingId + " " + entry.leadershipTermId + " " + entry.termBaseLogPosition + " "
                    + entry.logPosition + " " + entry.timestamp + " " + entry.serviceId + " " + entry.type + " "
                    + entry.isValid + " " + entry.entryIndex + " " + entry.archiveEndpoint);
            }
        }
    }

    private static void mark(final File directory) {
        final ClusterMarkFile mark = new ClusterMarkFile(
            new File(directory, ClusterMarkFile.FILENAME), ClusterComponentType.CONSENSUS_MODULE, 1 << 20,
            () -> 1_700_000_000_000L, 10_000);
        mark.encoder()
            .archiveStreamId(10).serviceStreamId(104).consensusModuleStreamId(105).ingressStreamId(101)
            .memberId(2).serviceId(-1).clusterId(7)
            .aeronDirectory("/dev/shm/aeron").controlChannel("aeron:ipc").ingressChannel("aeron:udp")
            .serviceName("").authenticator("some.Supplier").servicesClusterDir("/services");
        mark.signalReady();
        mark.updateActivityTimestamp(1_700_000_000_123L);
        mark.force();
    }

    private static void make(final RecordingLog log) {
        log.appendTerm(7, 0, 0, 100);
        log.appendSnapshot(8, 0, 0, 640, 101, 0);
        log.appendSnapshot(9, 0, 0, 640, 101, -1);
        log.appendTerm(7, 1, 1024, 102);
        log.appendSnapshot(10, 1, 1024, 2048, 103, 0);
        log.appendSnapshot(11, 1, 1024, 2048, 103, -1);
        log.appendStandbySnapshot(12, 1, 1024, 2048, 104, -1, "localhost:8010");
        log.invalidateLatestSnapshot();
        log.force(2);
    }

    private static void messages() throws Exception {
        final BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        final MutableDirectBuffer buffer = new ExpandableArrayBuffer();
        final Class<?> headerClass = Class.forName("io.aeron.cluster.codecs.MessageHeaderEncoder");
        final Deque<Object> open = new ArrayDeque<>();
        Object message = null;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            final String[] words = line.split(" ", 3);
            switch (words[0]) {
                case "message" -> {
                    message = Class.forName("io.aeron.cluster.codecs." + words[1] + "Encoder")
                        .getConstructor().newInstance();
                    method(message, "wrapAndApplyHeader", 3)
                        .invoke(message, buffer, 0, headerClass.getConstructor().newInstance());
                    open.clear();
                    open.push(message);
                }
                case "field" -> set(open.peek(), words[1], Long.parseLong(words[2]));
                case "text" -> open.peek().getClass().getMethod(words[1], String.class)
                    .invoke(open.peek(), words.length > 2 ? words[2] : "");
                case "data" -> {
                    final byte[] bytes = HexFormat.of().parseHex(words.length > 2 ? words[2] : "");
                    open.peek().getClass()
                        .getMethod("put" + Character.toUpperCase(words[1].charAt(0)) + words[1].substring(1),
                            byte[].class, int.class, int.class)
                        .invoke(open.peek(), bytes, 0, bytes.length);
                }
                case "group" -> open.push(
                    method(open.peek(), words[1] + "Count", 1).invoke(open.peek(), Integer.parseInt(words[2])));
                case "next" -> method(open.peek(), "next", 0).invoke(open.peek());
                case "leave" -> open.pop();
                default -> {
                    final int length = 8 + (int) method(message, "encodedLength", 0).invoke(message);
                    final byte[] bytes = new byte[length];
                    buffer.getBytes(0, bytes);
                    System.out.println(HexFormat.of().formatHex(bytes));
                }
            }
        }
    }

    private static Method method(final Object object, final String name, final int parameterCount) {
        for (final Method one : object.getClass().getMethods()) {
            if (one.getName().equals(name) && one.getParameterCount() == parameterCount) {
                return one;
            }
        }
        throw new IllegalArgumentException(object.getClass() + " has no " + name);
    }

    private static void set(final Object object, final String name, final long value) throws Exception {
        final Method setter = method(object, name, 1);
        final Class<?> type = setter.getParameterTypes()[0];
        if (type == long.class) {
            setter.invoke(object, value);
        } else if (type == int.class) {
            setter.invoke(object, (int) value);
        } else if (type == short.class) {
            setter.invoke(object, (short) value);
        } else {
            setter.invoke(object, type.getMethod("get", int.class).invoke(null, (int) value));
        }
    }
}
