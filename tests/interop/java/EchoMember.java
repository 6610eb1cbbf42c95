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
import io.aeron.security.Authenticator;
import io.aeron.security.AuthenticatorSupplier;
import io.aeron.security.AuthorisationService;
import io.aeron.security.AuthorisationServiceSupplier;
import io.aeron.security.SessionProxy;
import io.aeron.security.SimpleAuthenticator;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.ShutdownSignalBarrier;
import org.agrona.concurrent.UnsafeBuffer;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;

/**
 * One member of an unmodified Java cluster, whose service sends each message back and counts them.
 *
 * All settings are system properties. Prints READY once it runs, and a line for each role that it takes. The message
 * "count?" is answered with the number of the other messages, over all sessions.
 */
public class EchoMember
{
    private static byte[] bytes(final String text)
    {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    public static void main(final String[] args)
    {
        try (ShutdownSignalBarrier barrier = new ShutdownSignalBarrier();
            ClusteredMediaDriver driver = ClusteredMediaDriver.launch(
                new MediaDriver.Context().terminationHook(barrier::signal),
                new Archive.Context(),
                new ConsensusModule.Context().terminationHook(barrier::signal));
            ClusteredServiceContainer container = ClusteredServiceContainer.launch(
                new ClusteredServiceContainer.Context()
                    .clusteredService(new Echo()).terminationHook(barrier::signal)))
        {
            System.out.println("READY");
            barrier.await();
        }
    }

    private static final class Echo implements ClusteredService
    {
        private final UnsafeBuffer number = new UnsafeBuffer(new byte[32]);
        private Cluster cluster;
        private long count;

        public void onStart(final Cluster cluster, final Image snapshot)
        {
            this.cluster = cluster;
            while (snapshot != null && !snapshot.isEndOfStream())
            {
                if (snapshot.poll((buffer, offset, length, header) -> count = buffer.getLong(offset), 1) == 0)
                {
                    cluster.idleStrategy().idle();
                }
            }
        }

        public void onSessionMessage(
            final ClientSession session,
            final long timestamp,
            final DirectBuffer buffer,
            final int offset,
            final int length,
            final Header header)
        {
            if (length == 6 && buffer.getStringWithoutLengthAscii(offset, length).equals("count?"))
            {
                send(session, number, 0, number.putLongAscii(0, count));
            }
            else
            {
                count++;
                send(session, buffer, offset, length);
            }
        }

        private void send(final ClientSession session, final DirectBuffer buffer, final int offset, final int length)
        {
            cluster.idleStrategy().reset();
            while (true)
            {
                final long result = session.offer(buffer, offset, length);
                if (result > 0 || result == Publication.NOT_CONNECTED || result == Publication.CLOSED)
                {
                    return;
                }
                cluster.idleStrategy().idle();
            }
        }

        public void onTakeSnapshot(final ExclusivePublication snapshot)
        {
            final UnsafeBuffer state = new UnsafeBuffer(new byte[1 << 20]);
            for (int i = Integer.getInteger("headrace.state.mib", 0); i > 0; i--)
            {
                while (snapshot.offer(state) < 0)
                {
                    cluster.idleStrategy().idle();
                }
            }
            number.putLong(0, count);
            while (snapshot.offer(number, 0, 8) < 0)
            {
                cluster.idleStrategy().idle();
            }
            System.out.println("SNAPSHOT");
        }

        public void onRoleChange(final Cluster.Role role)
        {
            System.out.println(role);
        }

        public void onSessionOpen(final ClientSession session, final long timestamp)
        {
        }

        public void onSessionClose(final ClientSession session, final long timestamp, final CloseReason reason)
        {
            System.out.println("CLOSED " + reason);
        }

        public void onTimerEvent(final long correlationId, final long timestamp)
        {
        }

        public void onTerminate(final Cluster cluster)
        {
        }
    }

    /** One user with a secret. */
    public static class Simple implements AuthenticatorSupplier
    {
        public Authenticator get()
        {
            return new SimpleAuthenticator.Builder().principal(bytes("alice"), bytes("alice:secret")).newInstance();
        }
    }

    /** Asks each client for the answer to a question. */
    public static class Asking implements AuthenticatorSupplier
    {
        public Authenticator get()
        {
            final Set<Long> proven = new HashSet<>();
            final Set<Long> answered = new HashSet<>();
            return new Authenticator()
            {
                public void onConnectRequest(final long sessionId, final byte[] credentials, final long nowMs)
                {
                }

                public void onChallengeResponse(final long sessionId, final byte[] answer, final long nowMs)
                {
                    answered.add(sessionId);
                    if (Arrays.equals(answer, bytes("it is me")))
                    {
                        proven.add(sessionId);
                    }
                }

                public void onConnectedSession(final SessionProxy session, final long nowMs)
                {
                    session.challenge(bytes("who is there?"));
                }

                public void onChallengedSession(final SessionProxy session, final long nowMs)
                {
                    if (proven.contains(session.sessionId()))
                    {
                        session.authenticate(bytes("asked"));
                    }
                    else if (answered.contains(session.sessionId()))
                    {
                        session.reject();
                    }
                }
            };
        }
    }

    /** Lets each client have snapshots taken. */
    public static class Allowing implements AuthorisationServiceSupplier
    {
        public AuthorisationService get()
        {
            return AuthorisationService.ALLOW_ALL;
        }
    }
}
