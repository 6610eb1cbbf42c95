import io.aeron.ExclusivePublication;
import io.aeron.Image;
import io.aeron.Publication;
import io.aeron.archive.Archive;
import io.aeron.cluster.ConsensusModule;
import io.aeron.cluster.codecs.CloseReason;
import io.aeron.cluster.service.ClientSession;
import io.aeron.cluster.service.Cluster;
import io.aeron.cluster.service.ClusteredService;
import io.aeron.cluster.service.ClusteredServiceContainer;
import io.aeron.logbuffer.Header;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.ShutdownSignalBarrier;

/**
 * Archive, consensus module and a service that sends each message back, in one process, on a driver in another.
 *
 * All settings are system properties. Prints READY when they run; clients may have to ask again until the node leads.
 */
public class EchoNode implements ClusteredService
{
    private Cluster cluster;

    public static void main(final String[] args)
    {
        try (ShutdownSignalBarrier barrier = new ShutdownSignalBarrier();
            Archive archive = Archive.launch(new Archive.Context());
            ConsensusModule module = ConsensusModule.launch(
                new ConsensusModule.Context().terminationHook(barrier::signal));
            ClusteredServiceContainer container = ClusteredServiceContainer.launch(
                new ClusteredServiceContainer.Context()
                    .clusteredService(new EchoNode()).terminationHook(barrier::signal)))
        {
            System.out.println("READY");
            barrier.await();
        }
    }

    public void onStart(final Cluster cluster, final Image snapshot)
    {
        this.cluster = cluster;
    }

    public void onSessionMessage(
        final ClientSession session,
        final long timestamp,
        final DirectBuffer buffer,
        final int offset,
        final int length,
        final Header header)
    {
        long result = session.offer(buffer, offset, length);
        while (result == Publication.BACK_PRESSURED || result == Publication.ADMIN_ACTION)
        {
            cluster.idleStrategy().idle();
            result = session.offer(buffer, offset, length);
        }
    }

    public void onSessionOpen(final ClientSession session, final long timestamp)
    {
    }

    public void onSessionClose(final ClientSession session, final long timestamp, final CloseReason reason)
    {
    }

    public void onTimerEvent(final long correlationId, final long timestamp)
    {
    }

    public void onTakeSnapshot(final ExclusivePublication snapshot)
    {
    }

    public void onRoleChange(final Cluster.Role role)
    {
    }

    public void onTerminate(final Cluster cluster)
    {
    }
}
