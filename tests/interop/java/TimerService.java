import io.aeron.ExclusivePublication;
import io.aeron.Image;
import io.aeron.cluster.codecs.CloseReason;
import io.aeron.cluster.service.ClientSession;
import io.aeron.cluster.service.Cluster;
import io.aeron.cluster.service.ClusteredService;
import io.aeron.cluster.service.ClusteredServiceContainer;
import io.aeron.logbuffer.Header;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.ShutdownSignalBarrier;
import org.agrona.concurrent.UnsafeBuffer;

import java.nio.charset.StandardCharsets;
import java.util.function.BooleanSupplier;

/**
 * A service that schedules, moves and cancels timers as its clients say, and keeps which fired. The same as
 * `timer_service.py`, which says what clients say.
 */
public class TimerService implements ClusteredService
{
    private final int serviceId = Integer.getInteger("aeron.cluster.service.id", 0);
    private final StringBuilder fired = new StringBuilder();
    private Cluster cluster;

    public static void main(final String[] args)
    {
        try
        {
            final ShutdownSignalBarrier barrier = new ShutdownSignalBarrier();
            try (ClusteredServiceContainer container = ClusteredServiceContainer.launch(
                new ClusteredServiceContainer.Context()
                    .clusteredService(new TimerService()).terminationHook(barrier::signal)))
            {
                barrier.await();
            }
        }
        catch (final RuntimeException ex)
        {
            // What had been started has threads, which would keep the process.
            ex.printStackTrace();
            Runtime.getRuntime().halt(1);
        }
    }

    public void onStart(final Cluster cluster, final Image snapshot)
    {
        this.cluster = cluster;
        while (snapshot != null && !snapshot.isEndOfStream())
        {
            snapshot.poll(
                (data, offset, length, header) -> fired.append(data.getStringWithoutLengthAscii(offset, length)), 1);
            cluster.idleStrategy().idle();
        }
        System.out.println("STARTED " + fired);
    }

    public void onSessionMessage(
        final ClientSession session,
        final long timestamp,
        final DirectBuffer data,
        final int offset,
        final int length,
        final Header header)
    {
        final String[] words = data.getStringWithoutLengthAscii(offset, length).split(" ");
        if (words[0].equals("fired?"))
        {
            final UnsafeBuffer answer = bytes(serviceId + ":" + fired);
            await(() -> session.offer(answer, 0, answer.capacity()) != -2);
            return;
        }
        final long timerId = 10 * Long.parseLong(words[1]) + serviceId;
        if (words[0].equals("in"))
        {
            await(() -> cluster.scheduleTimer(timerId, timestamp + Long.parseLong(words[2])));
        }
        else
        {
            await(() -> cluster.cancelTimer(timerId));
        }
    }

    public void onTimerEvent(final long correlationId, final long timestamp)
    {
        fired.append(correlationId).append(' ');
    }

    public void onTakeSnapshot(final ExclusivePublication snapshot)
    {
        final UnsafeBuffer state = bytes(" " + fired);
        await(() -> snapshot.offer(state, 0, state.capacity()) > 0);
    }

    private static UnsafeBuffer bytes(final String text)
    {
        return new UnsafeBuffer(text.getBytes(StandardCharsets.US_ASCII));
    }

    private void await(final BooleanSupplier done)
    {
        cluster.idleStrategy().reset();
        while (!done.getAsBoolean())
        {
            cluster.idleStrategy().idle();
        }
    }

    public void onSessionOpen(final ClientSession session, final long timestamp)
    {
    }

    public void onSessionClose(final ClientSession session, final long timestamp, final CloseReason reason)
    {
    }

    public void onRoleChange(final Cluster.Role role)
    {
    }

    public void onTerminate(final Cluster cluster)
    {
    }
}
