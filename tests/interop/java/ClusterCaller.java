import io.aeron.cluster.client.AeronCluster;
import io.aeron.cluster.client.EgressListener;
import io.aeron.cluster.codecs.AdminRequestType;
import io.aeron.cluster.codecs.AdminResponseCode;
import io.aeron.cluster.codecs.EventCode;
import io.aeron.logbuffer.Header;
import io.aeron.security.CredentialsSupplier;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/**
 * An unmodified Java client of a cluster, which does what its arguments say, one after the other, and prints what came
 * of it.
 *
 * usage: ClusterCaller DIR INGRESS EGRESS COMMAND...
 *
 * INGRESS is a list of endpoints, or aeron:ipc. Commands: echo:COUNT:LENGTH, send:COUNT:ANSWERS, state, unit,
 * long:LENGTH, alive:MS, silent, deaf, later, close, snapshot, more:COUNT. The properties `credentials` and `answer` are what the client shows.
 */
public class ClusterCaller implements EgressListener
{
    private static final long DEADLINE_NS = 90_000_000_000L;
    private final List<byte[]> answers = new ArrayList<>();
    private final List<String> closed = new ArrayList<>();
    private String admin;
    private long timestamp;

    public void onMessage(
        final long clusterSessionId,
        final long timestamp,
        final DirectBuffer buffer,
        final int offset,
        final int length,
        final Header header)
    {
        final byte[] answer = new byte[length];
        buffer.getBytes(offset, answer);
        answers.add(answer);
        this.timestamp = timestamp;
    }

    public void onSessionEvent(
        final long correlationId,
        final long clusterSessionId,
        final long leadershipTermId,
        final int leaderMemberId,
        final EventCode code,
        final String detail)
    {
        if (code != EventCode.OK)
        {
            closed.add(code + " " + detail);
        }
    }

    public void onAdminResponse(
        final long clusterSessionId,
        final long correlationId,
        final AdminRequestType requestType,
        final AdminResponseCode responseCode,
        final String message,
        final DirectBuffer payload,
        final int payloadOffset,
        final int payloadLength)
    {
        admin = requestType + " " + responseCode + " " + message;
    }

    private static byte[] bytes(final String text)
    {
        return text.getBytes(StandardCharsets.US_ASCII);
    }

    private static AeronCluster connect(final String[] args, final EgressListener listener)
    {
        final boolean isIpc = args[1].startsWith("aeron:");
        return AeronCluster.connect(new AeronCluster.Context()
            .aeronDirectoryName(args[0])
            .egressListener(listener)
            .credentialsSupplier(new CredentialsSupplier()
            {
                public byte[] encodedCredentials()
                {
                    return bytes(System.getProperty("credentials", ""));
                }

                public byte[] onChallenge(final byte[] encodedChallenge)
                {
                    System.out.println("CHALLENGED " + new String(encodedChallenge, StandardCharsets.US_ASCII));
                    return bytes(System.getProperty("answer", ""));
                }
            })
            .ingressChannel(isIpc ? args[1] : "aeron:udp?term-length=1m")
            .ingressEndpoints(isIpc ? null : args[1])
            .egressChannel(args[2])
            .messageTimeoutNs(30_000_000_000L));
    }

    private static void await(final AeronCluster cluster, final BooleanSupplier done)
    {
        final long deadline = System.nanoTime() + DEADLINE_NS;
        while (!done.getAsBoolean())
        {
            if (cluster.pollEgress() == 0)
            {
                Thread.yield();
            }
            if (System.nanoTime() > deadline)
            {
                throw new IllegalStateException("it did not come");
            }
        }
    }

    private void send(final AeronCluster cluster, final byte[] message)
    {
        final UnsafeBuffer buffer = new UnsafeBuffer(message);
        await(cluster, () -> cluster.offer(buffer, 0, message.length) > 0);
    }

    private byte[] asked(final AeronCluster cluster, final String text)
    {
        answers.clear();
        send(cluster, bytes(text));
        await(cluster, () -> !answers.isEmpty());
        return answers.get(0);
    }

    private static byte[] message(final int number, final int length)
    {
        final byte[] message = new byte[length];
        for (int i = 0; i < length; i++)
        {
            message[i] = (byte)(number * 7 + i);
        }
        return message;
    }

    private void echo(final AeronCluster cluster, final int count, final int length)
    {
        answers.clear();
        int sent = 0;
        while (sent < count)
        {
            send(cluster, message(sent, length));
            sent++;
            final int due = sent - 32;
            await(cluster, () -> answers.size() >= due);
        }
        await(cluster, () -> answers.size() >= count);
        for (int i = 0; i < count; i++)
        {
            if (!java.util.Arrays.equals(answers.get(i), message(i, length)))
            {
                throw new IllegalStateException("echo " + i + " differs");
            }
        }
        System.out.println("ECHOED " + answers.size());
    }

    private void run(final AeronCluster cluster, final String[] args, final String command) throws Exception
    {
        final String[] words = command.split(":");
        switch (words[0])
        {
            case "echo":
                echo(cluster, Integer.parseInt(words[1]), Integer.parseInt(words[2]));
                break;
            case "send":
                answers.clear();
                for (int i = 0; i < Integer.parseInt(words[1]); i++)
                {
                    send(cluster, message(i, 100));
                }
                await(cluster, () -> answers.size() == Integer.parseInt(words[2]));
                System.out.println("ANSWERED " + answers.size());
                break;
            case "state":
                System.out.println("STATE " + new String(asked(cluster, "state?"), StandardCharsets.US_ASCII));
                break;
            case "unit":
                asked(cluster, "state?");
                for (final TimeUnit unit : TimeUnit.values())
                {
                    // All answers are of this day: in another unit they are of another century.
                    if (Math.abs(unit.toDays(timestamp) - TimeUnit.MILLISECONDS.toDays(System.currentTimeMillis())) < 2)
                    {
                        System.out.println("UNIT " + unit);
                    }
                }
                break;
            case "long":
                send(cluster, new byte[Integer.parseInt(words[1])]);
                await(cluster, () -> !closed.isEmpty());
                System.out.println("TOLD " + closed);
                closed.clear();
                break;
            case "alive":
                final long end = System.nanoTime() + Long.parseLong(words[1]) * 1_000_000L;
                while (System.nanoTime() < end)
                {
                    cluster.sendKeepAlive();
                    cluster.pollEgress();
                    Thread.sleep(100);
                }
                System.out.println("ALIVE " + closed);
                break;
            case "deaf":
                System.out.println("DEAF");
                while (true)
                {
                    Thread.sleep(100);
                }
            case "silent":
                await(cluster, () -> cluster.isClosed() || !closed.isEmpty());
                System.out.println("CLOSED " + closed);
                break;
            case "later":
                send(cluster, bytes("later!"));
                System.out.println("LATER");
                break;
            case "close":
                send(cluster, bytes("close!"));
                await(cluster, () -> cluster.isClosed() || !closed.isEmpty());
                System.out.println("CLOSED " + closed);
                break;
            case "snapshot":
                admin = null;
                if (!cluster.sendAdminRequestToTakeASnapshot(77))
                {
                    throw new IllegalStateException("the request was not sent");
                }
                await(cluster, () -> admin != null);
                System.out.println("ADMIN " + admin);
                break;
            case "more":
                final List<AeronCluster> others = new ArrayList<>();
                try
                {
                    for (int i = 0; i < Integer.parseInt(words[1]); i++)
                    {
                        final ClusterCaller other = new ClusterCaller();
                        others.add(connect(args, other));
                        other.echo(others.get(i), 10, 100);
                    }
                }
                catch (final RuntimeException ex)
                {
                    System.out.println("REFUSED " + ex.getClass().getSimpleName() + " " + ex.getMessage());
                }
                others.forEach(AeronCluster::close);
                break;
            default:
                throw new IllegalArgumentException(command);
        }
    }

    public static void main(final String[] args) throws Exception
    {
        final ClusterCaller caller = new ClusterCaller();
        final AeronCluster cluster;
        try
        {
            cluster = connect(args, caller);
        }
        catch (final RuntimeException ex)
        {
            System.out.println("REFUSED " + ex.getClass().getSimpleName() + " " + ex.getMessage());
            return;
        }
        System.out.println("CONNECTED");
        try (cluster)
        {
            for (int i = 3; i < args.length; i++)
            {
                caller.run(cluster, args, args[i]);
            }
        }
        System.out.println("DONE");
    }
}
