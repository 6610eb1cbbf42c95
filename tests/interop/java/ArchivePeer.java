import io.aeron.Aeron;
import io.aeron.ChannelUriStringBuilder;
import io.aeron.ExclusivePublication;
import io.aeron.Subscription;
import io.aeron.archive.client.AeronArchive;
import io.aeron.archive.client.ArchiveException;
import io.aeron.archive.codecs.SourceLocation;
import io.aeron.logbuffer.FragmentHandler;
import io.aeron.FragmentAssembler;
import org.agrona.concurrent.UnsafeBuffer;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/**
 * An unmodified Java client of an archive, playing through its requests.
 *
 * usage: ArchivePeer DIR REQUEST_CHANNEL RESPONSE_CHANNEL LIVE_CHANNEL REPLAY_CHANNEL COUNT
 */
public class ArchivePeer
{
    private static final int STREAM = 1101;
    private static final int REPLAY_STREAM = 1102;
    private static final long DEADLINE_NS = 60_000_000_000L;

    private static void check(final boolean condition, final String text)
    {
        if (!condition)
        {
            throw new IllegalStateException(text);
        }
    }

    private static UnsafeBuffer message(final int index)
    {
        final byte[] bytes = new byte[20 + (index * 37) % 3000];
        for (int i = 0; i < bytes.length; i++)
        {
            bytes[i] = (byte)(index + i);
        }
        final UnsafeBuffer buffer = new UnsafeBuffer(bytes);
        buffer.putInt(0, index);
        return buffer;
    }

    private static void publish(final ExclusivePublication publication, final int from, final int to)
    {
        final long deadline = System.nanoTime() + DEADLINE_NS;
        for (int i = from; i < to; i++)
        {
            final UnsafeBuffer message = message(i);
            while (publication.offer(message, 0, message.capacity()) < 0)
            {
                check(System.nanoTime() < deadline, "cannot publish message " + i);
                Thread.yield();
            }
        }
    }

    private static void receive(final Subscription subscription, final int from, final int to)
    {
        final int[] next = { from };
        final FragmentHandler handler = new FragmentAssembler(
            (buffer, offset, length, header) ->
            {
                final UnsafeBuffer expected = message(next[0]);
                check(expected.equals(new UnsafeBuffer(buffer, offset, length)), "message " + next[0] + " differs");
                next[0]++;
            });
        final long deadline = System.nanoTime() + DEADLINE_NS;
        while (next[0] < to)
        {
            if (subscription.poll(handler, 50) == 0)
            {
                check(System.nanoTime() < deadline, "received " + next[0] + " of " + to);
                Thread.yield();
            }
        }
    }

    private static void awaitStop(final AeronArchive archive, final long recordingId, final long position)
    {
        final long deadline = System.nanoTime() + DEADLINE_NS;
        while (archive.getStopPosition(recordingId) != position)
        {
            check(System.nanoTime() < deadline, "stop position " + archive.getStopPosition(recordingId));
            LockSupport.parkNanos(1_000_000);
        }
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

    public static void main(final String[] args)
    {
        final String live = args[3];
        final String replayChannel = args[4];
        final int count = Integer.parseInt(args[5]);
        final AeronArchive.Context context = new AeronArchive.Context()
            .aeronDirectoryName(args[0])
            .controlRequestChannel(args[1])
            .controlResponseChannel(args[2]);
        final List<String> signals = new ArrayList<>();
        context.recordingSignalConsumer(
            (session, correlation, recording, subscription, position, signal) -> signals.add(signal.name()));
        try (AeronArchive archive = AeronArchive.connect(context))
        {
            System.out.println("READY");
            final Aeron aeron = archive.context().aeron();
            final ExclusivePublication publication = aeron.addExclusivePublication(live, STREAM);
            final String recorded = new ChannelUriStringBuilder(live).sessionId(publication.sessionId()).build();
            final long subscriptionId = archive.startRecording(recorded, STREAM, SourceLocation.LOCAL);
            expectError(ArchiveException.ACTIVE_SUBSCRIPTION,
                () -> archive.startRecording(recorded, STREAM, SourceLocation.LOCAL));
            publish(publication, 0, count);
            final long position = publication.position();

            long recordingId = AeronArchive.NULL_POSITION;
            final long findDeadline = System.nanoTime() + DEADLINE_NS;
            while (recordingId < 0)
            {
                check(System.nanoTime() < findDeadline, "no recording of " + live);
                LockSupport.parkNanos(1_000_000);
                recordingId = archive.findLastMatchingRecording(0, live.substring(0, 9), STREAM, publication.sessionId());
            }
            final long id = recordingId;
            while (archive.getRecordingPosition(id) != position)
            {
                check(System.nanoTime() < findDeadline, "recorded up to " + archive.getRecordingPosition(id));
                LockSupport.parkNanos(1_000_000);
            }
            check(archive.getMaxRecordedPosition(id) == position, "max recorded position");
            final int[] subscriptions = { 0 };
            archive.listRecordingSubscriptions(0, 10, "aeron:", STREAM, true,
                (session, correlation, subscription, stream, channel) -> subscriptions[0]++);
            check(subscriptions[0] == 1, "recording subscriptions: " + subscriptions[0]);

            // A replay of the live recording, from the beginning and from a message in the middle.
            try (Subscription replay = archive.replay(id, 0, Long.MAX_VALUE, replayChannel, REPLAY_STREAM))
            {
                receive(replay, 0, count);
                publish(publication, count, 2 * count);
                receive(replay, count, 2 * count);
            }
            final long end = publication.position();
            publication.close();
            archive.stopRecording(subscriptionId);
            awaitStop(archive, id, end);
            check(archive.getStartPosition(id) == 0, "start position");
            check(archive.getRecordingPosition(id) == AeronArchive.NULL_POSITION, "recording position");

            try (Subscription replay = archive.replay(id, position, end - position, replayChannel, REPLAY_STREAM))
            {
                receive(replay, count, 2 * count);
            }
            final long[] listed = { 0, 0 };
            check(1 == archive.listRecording(id, (session, correlation, recording, startTimestamp, stopTimestamp,
                startPosition, stopPosition, initialTermId, segmentFileLength, termBufferLength, mtuLength, sessionId,
                streamId, strippedChannel, originalChannel, sourceIdentity) ->
                {
                    check(recording == id && stopPosition == end && originalChannel.equals(recorded), "descriptor");
                    listed[0] = initialTermId;
                    listed[1] = termBufferLength;
                }), "list recording");
            check(archive.listRecordings(0, 100, (a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) -> {}) >= 1, "list");
            check(archive.listRecordingsForUri(0, 100, "nowhere", STREAM,
                (a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) -> {}) == 0, "list for uri");

            expectError(ArchiveException.UNKNOWN_RECORDING, () -> archive.getStartPosition(4711));
            expectError(ArchiveException.UNKNOWN_SUBSCRIPTION, () -> archive.stopRecording(4711));
            expectError(ArchiveException.INVALID_POSITION,
                () -> archive.startReplay(id, end + 32, 32, replayChannel, REPLAY_STREAM));
            expectError(ArchiveException.INVALID_POSITION, () -> archive.truncateRecording(id, end + 32));

            // Extend it where it stopped, then cut it back.
            final String extension = new ChannelUriStringBuilder(live)
                .initialPosition(end, (int)listed[0], (int)listed[1]).mtu(publication.maxPayloadLength() + 32).build();
            archive.extendRecording(id, live, STREAM, SourceLocation.LOCAL);
            final long finalEnd;
            try (ExclusivePublication extended = aeron.addExclusivePublication(extension, STREAM))
            {
                publish(extended, 2 * count, 3 * count);
                finalEnd = extended.position();
                while (archive.getRecordingPosition(id) != finalEnd)
                {
                    LockSupport.parkNanos(1_000_000);
                }
            }
            archive.stopRecording(live, STREAM);
            awaitStop(archive, id, finalEnd);
            try (Subscription replay = archive.replay(id, 0, finalEnd, replayChannel, REPLAY_STREAM))
            {
                receive(replay, 0, 3 * count);
            }
            archive.truncateRecording(id, position);
            check(archive.getStopPosition(id) == position, "truncated");
            try (Subscription replay = archive.replay(id, 0, position, replayChannel, REPLAY_STREAM))
            {
                receive(replay, 0, count);
            }
            final long deadline = System.nanoTime() + DEADLINE_NS;
            while (!signals.contains("DELETE"))
            {
                archive.pollForRecordingSignals();
                check(System.nanoTime() < deadline, "signals " + signals);
            }
            check(signals.equals(List.of("START", "STOP", "EXTEND", "STOP", "DELETE")), "signals " + signals);
            System.out.println("archive id " + archive.archiveId());
        }
        System.out.println("DONE");
    }
}
