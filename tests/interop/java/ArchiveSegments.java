import io.aeron.Aeron;
import io.aeron.ChannelUriStringBuilder;
import io.aeron.ExclusivePublication;
import io.aeron.Subscription;
import io.aeron.archive.client.AeronArchive;
import io.aeron.archive.client.ArchiveException;
import io.aeron.archive.codecs.SourceLocation;
import io.aeron.logbuffer.FragmentHandler;
import org.agrona.concurrent.UnsafeBuffer;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/**
 * An unmodified Java client of an archive with segment files of 64 KiB, which has segments leave and join recordings.
 *
 * usage: ArchiveSegments DIR CHANNEL
 */
public class ArchiveSegments
{
    private static final String LIVE = "aeron:ipc?term-length=64k";
    private static final int STREAM = 1201;
    private static final int REPLAY_STREAM = 1202;
    private static final int SEGMENT = 64 * 1024;
    /** A message with its header fills this many bytes, so that messages end where segment files do. */
    private static final int FRAME = 1024;
    private static final int PER_SEGMENT = SEGMENT / FRAME;
    private static final long DEADLINE_NS = 60_000_000_000L;

    private static final List<String> SIGNALS = new ArrayList<>();

    private static void check(final boolean condition, final String text)
    {
        if (!condition)
        {
            throw new IllegalStateException(text);
        }
    }

    private static UnsafeBuffer message(final int index)
    {
        final UnsafeBuffer buffer = new UnsafeBuffer(new byte[FRAME - 32]);
        buffer.setMemory(0, buffer.capacity(), (byte)(index + 1));
        buffer.putInt(0, index);
        return buffer;
    }

    private static void await(final String what, final java.util.function.BooleanSupplier condition)
    {
        final long deadline = System.nanoTime() + DEADLINE_NS;
        while (!condition.getAsBoolean())
        {
            check(System.nanoTime() < deadline, "not in time: " + what);
            LockSupport.parkNanos(1_000_000);
        }
    }

    /** Records messages, and gives the id of the recording when it has stopped. */
    private static long record(final AeronArchive archive, final String channel, final int from, final int to)
    {
        final Aeron aeron = archive.context().aeron();
        final long[] id = { -1 };
        final long subscription;
        final long end;
        try (ExclusivePublication publication = aeron.addExclusivePublication(channel, STREAM))
        {
            final String recorded = new ChannelUriStringBuilder(LIVE).sessionId(publication.sessionId()).build();
            subscription = archive.startRecording(recorded, STREAM, SourceLocation.LOCAL);
            for (int i = from; i < to; i++)
            {
                final UnsafeBuffer message = message(i);
                await("message " + i, () -> publication.offer(message, 0, message.capacity()) > 0);
            }
            end = publication.position();
            await("the recording", () ->
            {
                id[0] = archive.findLastMatchingRecording(0, "aeron:ipc", STREAM, publication.sessionId());
                return id[0] >= 0 && archive.getRecordingPosition(id[0]) == end;
            });
        }
        archive.stopRecording(subscription);
        await("the stop position", () -> archive.getStopPosition(id[0]) == end);
        return id[0];
    }

    /** A channel that begins where a recording stops. */
    private static String after(final AeronArchive archive, final long id)
    {
        final String[] channel = { null };
        archive.listRecording(id, (session, correlation, recording, startTimestamp, stopTimestamp, startPosition,
            stopPosition, initialTermId, segmentFileLength, termBufferLength, mtuLength, sessionId, streamId,
            strippedChannel, originalChannel, sourceIdentity) ->
            channel[0] = new ChannelUriStringBuilder(LIVE)
                .initialPosition(stopPosition, initialTermId, termBufferLength).mtu(mtuLength).build());
        return channel[0];
    }

    private static void replay(final AeronArchive archive, final long id, final int from, final int to)
    {
        final int[] next = { from };
        final FragmentHandler handler = (buffer, offset, length, header) ->
        {
            check(message(next[0]).equals(new UnsafeBuffer(buffer, offset, length)), "message " + next[0]);
            next[0]++;
        };
        final long start = archive.getStartPosition(id);
        final long length = archive.getStopPosition(id) - start;
        try (Subscription subscription = archive.replay(id, start, length, "aeron:ipc", REPLAY_STREAM))
        {
            await("message " + to, () ->
            {
                subscription.poll(handler, 50);
                return next[0] == to;
            });
        }
    }

    private static void awaitDeleted(final AeronArchive archive)
    {
        await("the signal DELETE", () ->
        {
            archive.pollForRecordingSignals();
            return SIGNALS.remove("DELETE");
        });
    }

    private static void expectError(final int code, final Runnable request)
    {
        try
        {
            request.run();
        }
        catch (final ArchiveException refusal)
        {
            check(refusal.errorCode() == code, "error " + refusal.errorCode() + ": " + refusal.getMessage());
            return;
        }
        throw new IllegalStateException("no error " + code);
    }

    private static void expect(final String what, final long found, final long wanted)
    {
        check(found == wanted, what + ": " + found + ", not " + wanted);
    }

    public static void main(final String[] args)
    {
        final AeronArchive.Context context = new AeronArchive.Context()
            .aeronDirectoryName(args[0])
            .controlRequestChannel(args[1])
            .controlResponseChannel(args[1])
            .recordingSignalConsumer(
                (session, correlation, recording, subscription, position, signal) -> SIGNALS.add(signal.name()));
        try (AeronArchive archive = AeronArchive.connect(context))
        {
            final long id = record(archive, LIVE, 0, 4 * PER_SEGMENT + 5);
            archive.detachSegments(id, 2 * SEGMENT);
            expect("start after detaching", archive.getStartPosition(id), 2 * SEGMENT);
            replay(archive, id, 2 * PER_SEGMENT, 4 * PER_SEGMENT + 5);
            expect("attached", archive.attachSegments(id), 2);
            expect("start after attaching", archive.getStartPosition(id), 0);
            replay(archive, id, 0, 4 * PER_SEGMENT + 5);
            archive.detachSegments(id, 2 * SEGMENT);
            expect("deleted", archive.deleteDetachedSegments(id), 2);
            awaitDeleted(archive);
            expect("attached", archive.attachSegments(id), 0);
            expect("purged", archive.purgeSegments(id, 3 * SEGMENT), 1);
            awaitDeleted(archive);
            replay(archive, id, 3 * PER_SEGMENT, 4 * PER_SEGMENT + 5);

            expectError(ArchiveException.GENERIC, () -> archive.detachSegments(id, 3 * SEGMENT + FRAME));
            expectError(ArchiveException.GENERIC, () -> archive.detachSegments(id, 3 * SEGMENT));
            expectError(ArchiveException.GENERIC, () -> archive.purgeSegments(id, 5 * SEGMENT));
            expectError(ArchiveException.UNKNOWN_RECORDING, () -> archive.detachSegments(4711, SEGMENT));
            expectError(ArchiveException.UNKNOWN_RECORDING, () -> archive.deleteDetachedSegments(4711));
            expectError(ArchiveException.UNKNOWN_RECORDING, () -> archive.purgeSegments(4711, SEGMENT));
            expectError(ArchiveException.UNKNOWN_RECORDING, () -> archive.attachSegments(4711));
            expectError(ArchiveException.UNKNOWN_RECORDING, () -> archive.migrateSegments(id, 4711));
            expectError(ArchiveException.UNKNOWN_RECORDING, () -> archive.migrateSegments(4711, id));
            expectError(ArchiveException.GENERIC, () -> archive.migrateSegments(id, id));

            final long first = record(archive, LIVE, 0, 2 * PER_SEGMENT);
            final long second = record(archive, after(archive, first), 2 * PER_SEGMENT, 3 * PER_SEGMENT);
            final long third = record(archive, after(archive, second), 3 * PER_SEGMENT, 4 * PER_SEGMENT + 3);
            expect("migrated to the beginning", archive.migrateSegments(first, second), 2);
            awaitDeleted(archive);
            replay(archive, second, 0, 3 * PER_SEGMENT);
            expectError(ArchiveException.GENERIC, () -> archive.migrateSegments(third, second));
            archive.truncateRecording(second, 3 * SEGMENT);
            awaitDeleted(archive);
            expect("migrated to the end", archive.migrateSegments(third, second), 2);
            awaitDeleted(archive);
            replay(archive, second, 0, 4 * PER_SEGMENT + 3);
            expect("the source is empty", archive.getStopPosition(third), archive.getStartPosition(third));
            System.out.println("DONE");
        }
    }
}
