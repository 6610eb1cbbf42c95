import io.aeron.ExclusivePublication;
import io.aeron.Image;
import io.aeron.Publication;
import io.aeron.archive.Archive;
import io.aeron.cluster.ClusteredMediaDriver;
import io.aeron.cluster.ConsensusModule;
import io.aeron.cluster.codecs.CloseReason;
import io.aeron.cluster.service.ClientSession;
import io.aeron.cluster.service.Cluster;
import io.aeron.cluster.service.ClusteredService;
import io.aeron.cluster.service.ClusteredServiceContainer;
import io.aeron.driver.MediaDriver;
import io.aeron.logbuffer.Header;
import io.aeron.security.AuthorisationService;
import org.agrona.CloseHelper;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.ShutdownSignalBarrier;
import org.agrona.concurrent.UnsafeBuffer;

import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;

/**
 * A service that echoes and counts, alone in its process or in a whole node. The same as `counter_service.py`: each
 * must come to the same state from the same log, and load the other's snapshot.
 *
 * usage: CounterService container|module|node
 */
public class CounterService implements ClusteredService
{
    private static final int EVERY = 50;
    private static final long LATER = 1_000_000_000L;
    private final UnsafeBuffer buffer = new UnsafeBuffer(new byte[256]);
    private Cluster cluster;
    private long count;
    private long hash;
    private long timers;
    private long selfMessages;

    public static void main(final String[] args)
    {
        try
        {
            run(args[0]);
        }
        catch (final RuntimeException ex)
        {
            // What had been started has threads, which would keep the process.
            ex.printStackTrace();
            Runtime.getRuntime().halt(1);
        }
    }

    private static void run(final String what)
    {
        final ShutdownSignalBarrier barrier = new ShutdownSignalBarrier();
        final ClusteredMediaDriver driver = what.equals("container") ? null : ClusteredMediaDriver.launch(
            new MediaDriver.Context().terminationHook(barrier::signal),
            new Archive.Context(),
            new ConsensusModule.Context()
                .authorisationServiceSupplier(() -> AuthorisationService.ALLOW_ALL)
                .terminationHook(barrier::signal));
        final ClusteredServiceContainer container = what.equals("module") ? null : ClusteredServiceContainer.launch(
            new ClusteredServiceContainer.Context()
                .clusteredService(new CounterService()).terminationHook(barrier::signal));
        System.out.println("READY");
        barrier.await();
        CloseHelper.closeAll(container, driver);
        System.out.println("ENDED");
        barrier.close();
    }

    public void onStart(final Cluster cluster, final Image snapshot)
    {
        this.cluster = cluster;
        if (Boolean.getBoolean("fails"))
        {
            throw new IllegalStateException("the service cannot start");
        }
        while (snapshot != null && !snapshot.isEndOfStream())
        {
            snapshot.poll((data, offset, length, header) ->
            {
                count = data.getLong(offset);
                hash = data.getLong(offset + 8);
                timers = data.getLong(offset + 16);
                selfMessages = data.getLong(offset + 24);
            }, 1);
            cluster.idleStrategy().idle();
        }
        System.out.println("STARTED " + state());
    }

    private String state()
    {
        return count + " " + hash + " " + timers + " " + selfMessages;
    }

    private long inUnit(final long milliseconds)
    {
        return cluster.timeUnit().convert(milliseconds, TimeUnit.MILLISECONDS);
    }

    private void mix(final long value)
    {
        hash = hash * 31 + value;
    }

    public void onSessionMessage(
        final ClientSession session,
        final long timestamp,
        final DirectBuffer data,
        final int offset,
        final int length,
        final Header header)
    {
        if (session == null)
        {
            selfMessages++;
            mix(data.getLong(offset));
            return;
        }
        final String text = length < 10 ? data.getStringWithoutLengthAscii(offset, length) : "";
        if (text.equals("state?"))
        {
            final String answered = state() + " " + cluster.clientSessions().size();
            final byte[] answer = answered.getBytes(StandardCharsets.US_ASCII);
            buffer.putBytes(0, answer);
            send(session, buffer, 0, answer.length);
            return;
        }
        if (text.equals("close!"))
        {
            session.close();
            return;
        }
        if (text.equals("later!"))
        {
            await(() -> cluster.scheduleTimer(LATER + count, timestamp + inUnit(6000)));
            return;
        }
        count++;
        for (int i = 0; i < length; i++)
        {
            mix(data.getByte(offset + i));
        }
        send(session, data, offset, length);
        if (count % EVERY == 0)
        {
            await(() -> cluster.scheduleTimer(count, timestamp + inUnit(1)));
            buffer.putLong(0, count);
            await(() -> cluster.offer(buffer, 0, 8) > 0);
        }
    }

    private void send(final ClientSession session, final DirectBuffer data, final int offset, final int length)
    {
        await(() ->
        {
            final long result = session.offer(data, offset, length);
            return result > 0 || result == Publication.NOT_CONNECTED || result == Publication.CLOSED;
        });
    }

    private void await(final java.util.function.BooleanSupplier done)
    {
        cluster.idleStrategy().reset();
        while (!done.getAsBoolean())
        {
            cluster.idleStrategy().idle();
        }
    }

    public void onTakeSnapshot(final ExclusivePublication snapshot)
    {
        buffer.putLong(0, count);
        buffer.putLong(8, hash);
        buffer.putLong(16, timers);
        buffer.putLong(24, selfMessages);
        await(() -> snapshot.offer(buffer, 0, 32) > 0);
        System.out.println("SNAPSHOT " + state());
    }

    public void onTimerEvent(final long correlationId, final long timestamp)
    {
        timers++;
        if (correlationId < LATER)
        {
            mix(correlationId);
        }
        else
        {
            // Those that fell due while no node ran fire in no order.
            hash += correlationId;
        }
    }

    public void onSessionOpen(final ClientSession session, final long timestamp)
    {
        System.out.println("OPENED");
    }

    public void onSessionClose(final ClientSession session, final long timestamp, final CloseReason reason)
    {
        System.out.println("CLOSED " + reason);
    }

    public void onRoleChange(final Cluster.Role role)
    {
        System.out.println(role);
    }

    public void onNewLeadershipTermEvent(
        final long leadershipTermId,
        final long logPosition,
        final long timestamp,
        final long termBaseLogPosition,
        final int leaderMemberId,
        final int logSessionId,
        final TimeUnit timeUnit,
        final int appVersion)
    {
        System.out.println("UNIT " + timeUnit);
    }

    public void onTerminate(final Cluster cluster)
    {
        System.out.println("TERMINATED " + state());
    }
}
