import io.aeron.FragmentAssembler;
import io.aeron.Subscription;
import io.aeron.archive.client.AeronArchive;
import io.aeron.archive.client.ReplayParams;
import io.aeron.logbuffer.FragmentHandler;

/**
 * An unmodified Java client whose answers and replay come back through response channels.
 *
 * usage: ArchiveResponder DIR REQUEST_CHANNEL RESPONSE_CHANNEL REPLAY_CHANNEL COUNT
 *
 * Replays recording 0 and prints the text of each message on a line.
 */
public class ArchiveResponder
{
    private static final int REPLAY_STREAM = 1102;
    private static final long DEADLINE_NS = 60_000_000_000L;

    public static void main(final String[] args)
    {
        final int count = Integer.parseInt(args[4]);
        final AeronArchive.Context context = new AeronArchive.Context()
            .aeronDirectoryName(args[0])
            .controlRequestChannel(args[1])
            .controlResponseChannel(args[2]);
        final ReplayParams params = new ReplayParams().position(0).length(AeronArchive.REPLAY_ALL_AND_STOP);
        final int[] taken = { 0 };
        final FragmentHandler handler = new FragmentAssembler(
            (buffer, offset, length, header) ->
            {
                System.out.println(buffer.getStringWithoutLengthAscii(offset, length));
                taken[0]++;
            });
        try (AeronArchive archive = AeronArchive.connect(context);
            Subscription replay = archive.replay(0, args[3], REPLAY_STREAM, params))
        {
            final long deadline = System.nanoTime() + DEADLINE_NS;
            while (taken[0] < count)
            {
                if (replay.poll(handler, 50) == 0)
                {
                    if (System.nanoTime() > deadline)
                    {
                        throw new IllegalStateException("took " + taken[0] + " of " + count);
                    }
                    Thread.yield();
                }
            }
            System.out.println("DONE");
        }
    }
}
