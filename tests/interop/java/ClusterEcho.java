import io.aeron.cluster.client.AeronCluster;
import io.aeron.cluster.client.EgressListener;
import io.aeron.logbuffer.Header;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * An unmodified Java client of a cluster: sends numbered messages, and insists on their echoes, in order, once each.
 * After a change of leader it sends again what was not answered, so echoes may then come twice; never out of order.
 *
 * usage: ClusterEcho DIR INGRESS_ENDPOINTS FROM TO PAUSE_MS
 */
public class ClusterEcho implements EgressListener
{
    private static final long DEADLINE_NS = 90_000_000_000L;
    private int answered;
    private int leaders;

    public void onMessage(
        final long clusterSessionId,
        final long timestamp,
        final DirectBuffer buffer,
        final int offset,
        final int length,
        final Header header)
    {
        final int number = buffer.getInt(offset);
        if (number > answered)
        {
            throw new IllegalStateException("echo " + number + " where " + answered + " is due");
        }
        for (int i = 4; i < length; i++)
        {
            if (buffer.getByte(offset + i) != (byte)(number + i))
            {
                throw new IllegalStateException("echo " + number + " differs at " + i);
            }
        }
        answered = Math.max(answered, number + 1);
    }

    public void onNewLeader(
        final long clusterSessionId, final long leadershipTermId, final int leaderMemberId, final String endpoints)
    {
        leaders++;
        System.out.println("LEADER " + leaderMemberId);
    }

    public static void main(final String[] args)
    {
        final int from = Integer.parseInt(args[2]);
        final int to = Integer.parseInt(args[3]);
        final int pauseMs = Integer.parseInt(args[4]);
        final ClusterEcho echo = new ClusterEcho();
        echo.answered = from;
        final AeronCluster.Context context = new AeronCluster.Context()
            .aeronDirectoryName(args[0])
            .egressListener(echo)
            .ingressChannel("aeron:udp")
            .ingressEndpoints(args[1])
            .egressChannel("aeron:udp?endpoint=127.0.0.1:0")
            .messageTimeoutNs(30_000_000_000L);
        try (AeronCluster cluster = AeronCluster.connect(context))
        {
            System.out.println("READY");
            final long deadline = System.nanoTime() + DEADLINE_NS;
            int sent = from;
            int leaders = 0;
            long lastNs = System.nanoTime();
            int before = from;
            while (echo.answered < to)
            {
                if (sent < to && sent - echo.answered < 32)
                {
                    final UnsafeBuffer message = new UnsafeBuffer(new byte[20 + sent % 2000]);
                    message.putInt(0, sent);
                    for (int i = 4; i < message.capacity(); i++)
                    {
                        message.putByte(i, (byte)(sent + i));
                    }
                    if (cluster.offer(message, 0, message.capacity()) > 0)
                    {
                        sent++;
                        if (pauseMs > 0)
                        {
                            Thread.sleep(pauseMs);
                        }
                    }
                }
                cluster.pollEgress();
                if (echo.answered != before)
                {
                    before = echo.answered;
                    lastNs = System.nanoTime();
                }
                else if (echo.leaders != leaders || System.nanoTime() - lastNs > 3_000_000_000L)
                {
                    leaders = echo.leaders;
                    lastNs = System.nanoTime();
                    sent = echo.answered;
                    cluster.sendKeepAlive();
                }
                if (System.nanoTime() > deadline)
                {
                    throw new IllegalStateException("answered " + echo.answered + " of " + to);
                }
                Thread.yield();
            }
            System.out.println("DONE " + echo.answered);
        }
        catch (final InterruptedException ex)
        {
            throw new IllegalStateException(ex);
        }
    }
}
