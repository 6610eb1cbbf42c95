import io.aeron.Aeron;
import io.aeron.FragmentAssembler;
import io.aeron.Subscription;
import io.aeron.archive.client.AeronArchive;
import io.aeron.archive.client.PersistentSubscription;
import io.aeron.archive.client.ReplayMerge;
import io.aeron.logbuffer.FragmentHandler;

/**
 * An unmodified Java client that catches up with a recording and goes live, with a replay merge or a persistent subscription.
 *
 * usage: ArchiveFollower merge DIR LIVE_DESTINATION SESSION_ID COUNT REQUEST_CHANNEL RESPONSE_CHANNEL
 *        ArchiveFollower persistent DIR LIVE_CHANNEL REPLAY_CHANNEL COUNT REQUEST_CHANNEL RESPONSE_CHANNEL
 *
 * Follows recording 0 of stream 1001. Prints LIVE once it is live, and the text of each message on a line before that and after.
 */
public class ArchiveFollower
{
    private static final int STREAM = 1001;
    private static final int REPLAY_STREAM = 1020;
    private static final long DEADLINE_NS = 60_000_000_000L;

    private interface Follower
    {
        int poll(FragmentHandler handler);

        boolean isLive();

        String failure();
    }

    private static void run(final Follower follower, final int count)
    {
        final int[] taken = { 0 };
        final StringBuilder lines = new StringBuilder();
        final FragmentHandler handler = (buffer, offset, length, header) ->
        {
            lines.append(buffer.getStringWithoutLengthAscii(offset, length)).append('\n');
            taken[0]++;
        };
        final long deadline = System.nanoTime() + DEADLINE_NS;
        boolean isLive = false;
        while (taken[0] < count || !isLive)
        {
            final int work = follower.poll(handler);
            System.out.print(lines);
            lines.setLength(0);
            if (!isLive && follower.isLive())
            {
                isLive = true;
                System.out.println("LIVE");
            }
            System.out.flush();
            final String failure = follower.failure();
            if (failure != null || System.nanoTime() > deadline)
            {
                throw new IllegalStateException("took " + taken[0] + " of " + count + ", live=" + isLive + ": " + failure);
            }
            if (work <= 0)
            {
                Thread.yield();
            }
        }
        System.out.println("DONE");
    }

    private static void merge(
        final Aeron aeron, final AeronArchive archive, final String live, final String session, final int count)
    {
        final String paths = "aeron:udp?control-mode=manual|session-id=" + session;
        try (Subscription subscription = aeron.addSubscription(paths, STREAM);
            ReplayMerge merge = new ReplayMerge(
                subscription,
                archive,
                "aeron:udp?session-id=" + session,
                "aeron:udp?endpoint=127.0.0.1:0",
                live,
                0,
                0))
        {
            run(new Follower()
            {
                private final FragmentAssembler[] assembler = new FragmentAssembler[1];

                public int poll(final FragmentHandler handler)
                {
                    if (assembler[0] == null)
                    {
                        assembler[0] = new FragmentAssembler(handler);
                    }
                    return merge.isMerged() ? subscription.poll(assembler[0], 50) : merge.poll(assembler[0], 50);
                }

                public boolean isLive()
                {
                    return merge.isMerged();
                }

                public String failure()
                {
                    return merge.hasFailed() ? merge.toString() : null;
                }
            }, count);
        }
    }

    private static void persistent(
        final Aeron aeron,
        final AeronArchive.Context archive,
        final String live,
        final String replay,
        final int count)
    {
        final PersistentSubscription.Context context = new PersistentSubscription.Context()
            .aeron(aeron)
            .recordingId(0)
            .startPosition(PersistentSubscription.FROM_START)
            .liveChannel(live)
            .liveStreamId(STREAM)
            .replayChannel(replay)
            .replayStreamId(REPLAY_STREAM)
            .aeronArchiveContext(archive);
        try (PersistentSubscription subscription = PersistentSubscription.create(context))
        {
            run(new Follower()
            {
                public int poll(final FragmentHandler handler)
                {
                    return subscription.poll(handler, 50);
                }

                public boolean isLive()
                {
                    return subscription.isLive();
                }

                public String failure()
                {
                    return subscription.hasFailed() ? String.valueOf(subscription.failureReason()) : null;
                }
            }, count);
        }
    }

    public static void main(final String[] args)
    {
        final int count = Integer.parseInt(args[4]);
        try (Aeron aeron = Aeron.connect(new Aeron.Context().aeronDirectoryName(args[1])))
        {
            final AeronArchive.Context context = new AeronArchive.Context()
                .aeron(aeron)
                .controlRequestChannel(args[5])
                .controlResponseChannel(args[6]);
            if (args[0].equals("merge"))
            {
                try (AeronArchive archive = AeronArchive.connect(context))
                {
                    merge(aeron, archive, args[2], args[3], count);
                }
            }
            else
            {
                persistent(aeron, context, args[2], args[3], count);
            }
        }
    }
}
