import io.aeron.archive.client.AeronArchive;
import io.aeron.archive.client.ArchiveException;
import io.aeron.archive.client.RecordingSignalConsumer;
import io.aeron.archive.client.ReplicationParams;
import io.aeron.archive.codecs.RecordingSignal;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/**
 * An unmodified Java client that has an archive copy a stopped recording of another one.
 *
 * usage: ArchiveReplication DIR SOURCE-CONTROL-CHANNEL RECORDING-ID END
 */
public class ArchiveReplication
{
    private static final long DEADLINE_NS = 60_000_000_000L;
    private static final List<String> SIGNALS = new ArrayList<>();
    private static final List<String> ERRORS = new ArrayList<>();
    private static long destinationId = -1;
    private static long stopped = -1;

    private static void check(final boolean condition, final String text)
    {
        if (!condition)
        {
            throw new IllegalStateException(text + ": signals " + SIGNALS + ", errors " + ERRORS);
        }
    }

    private static void await(final AeronArchive archive, final String what, final BooleanSupplier condition)
    {
        final long deadline = System.nanoTime() + DEADLINE_NS;
        while (!condition.getAsBoolean())
        {
            check(System.nanoTime() < deadline, "not in time: " + what);
            archive.pollForRecordingSignals();
            archive.checkForErrorResponse();
            LockSupport.parkNanos(1_000_000);
        }
    }

    private static void begin()
    {
        SIGNALS.clear();
        ERRORS.clear();
        stopped = -1;
    }

    private static void awaitCopy(final AeronArchive archive, final long end)
    {
        await(archive, "the end of the copy", () -> SIGNALS.contains("REPLICATE_END") && SIGNALS.contains("STOP"));
        check(ERRORS.isEmpty(), "no error");
        check(SIGNALS.indexOf("EXTEND") < SIGNALS.indexOf("SYNC"), "EXTEND before SYNC");
        check(SIGNALS.indexOf("SYNC") < SIGNALS.indexOf("REPLICATE_END"), "SYNC before REPLICATE_END");
        check(stopped == end, "ends at " + stopped);
    }

    public static void main(final String[] args)
    {
        final String source = args[1];
        final long sourceId = Long.parseLong(args[2]);
        final long end = Long.parseLong(args[3]);
        final RecordingSignalConsumer onSignal =
            (controlSessionId, correlationId, recordingId, subscriptionId, position, signal) ->
            {
                SIGNALS.add(signal.name());
                destinationId = recordingId >= 0 ? recordingId : destinationId;
                stopped = RecordingSignal.STOP == signal ? position : stopped;
            };
        final AeronArchive.Context context = new AeronArchive.Context()
            .aeronDirectoryName(args[0])
            .controlRequestChannel("aeron:ipc")
            .controlResponseChannel("aeron:ipc")
            .errorHandler((error) -> ERRORS.add(error.getMessage()))
            .recordingSignalConsumer(onSignal);
        try (AeronArchive archive = AeronArchive.connect(context))
        {
            archive.replicate(sourceId, 10, source, new ReplicationParams());
            awaitCopy(archive, end);
            check("REPLICATE".equals(SIGNALS.get(0)), "REPLICATE first");
            check(archive.getStopPosition(destinationId) == end, "the stop position");

            begin();
            archive.replicate(sourceId, 10, source, new ReplicationParams().dstRecordingId(destinationId));
            await(archive, "nothing to copy", () -> SIGNALS.contains("REPLICATE_END"));
            check(List.of("SYNC", "REPLICATE_END").equals(SIGNALS), "only SYNC");

            begin();
            archive.replicate(sourceId, 10, source, new ReplicationParams()
                .channelTagId(4711).subscriptionTagId(4712).fileIoMaxLength(64 * 1024));
            awaitCopy(archive, end);

            begin();
            archive.replicate(sourceId, 10, source, new ReplicationParams()
                .replicationSessionId(99).stopPosition(end / 2 / 65536 * 65536));
            await(archive, "the part", () -> SIGNALS.contains("REPLICATE_END") && SIGNALS.contains("STOP"));
            check(!SIGNALS.contains("SYNC"), "no SYNC for a part");
            check(stopped >= end / 2 / 65536 * 65536 && stopped < end, "a part ends at " + stopped);

            begin();
            archive.replicate(4711, 10, source, new ReplicationParams());
            await(archive, "the end of what is unknown", () -> SIGNALS.contains("REPLICATE_END"));
            check(1 == ERRORS.size() && ERRORS.get(0).contains("unknown src recording id"), "the error");

            try
            {
                archive.replicate(sourceId, 10, source, new ReplicationParams().dstRecordingId(4711));
                check(false, "an unknown destination is refused");
            }
            catch (final ArchiveException refusal)
            {
                check(ArchiveException.UNKNOWN_RECORDING == refusal.errorCode(), "the code of " + refusal);
            }
            check(!archive.tryStopReplication(4711), "nothing to stop");
        }
        System.out.println("DONE");
    }
}
