import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.archive.ArchiveCounters;
import io.aeron.archive.client.AeronArchive;
import io.aeron.archive.client.ArchiveException;
import io.aeron.archive.client.ReplicationParams;
import io.aeron.archive.codecs.SourceLocation;
import io.aeron.archive.status.RecordingPos;
import org.agrona.concurrent.UnsafeBuffer;
import org.agrona.concurrent.status.CountersReader;

import java.util.concurrent.TimeUnit;

/**
 * An unmodified Java client that asks an archive for what it cannot have, and prints what it is told: a line each of
 * name, code and text. Then the archive's counters, found by the reference's own code.
 *
 * usage: ArchiveRefusals DIR CHANNEL
 */
public class ArchiveRefusals
{
    private static void refused(final String name, final Runnable request)
    {
        try
        {
            request.run();
            System.out.println(name + "\tnone\t");
        }
        catch (final ArchiveException refusal)
        {
            System.out.println(name + "\t" + refusal.errorCode() + "\t" + refusal.getMessage());
        }
        catch (final Exception other)
        {
            System.out.println(name + "\t" + other.getClass().getSimpleName() + "\t" + other.getMessage());
        }
    }

    private static AeronArchive.Context context(final String directory, final String channel)
    {
        return new AeronArchive.Context()
            .aeronDirectoryName(directory)
            .controlRequestChannel(channel)
            .controlResponseChannel(channel)
            .messageTimeoutNs(TimeUnit.SECONDS.toNanos(20));
    }

    public static void main(final String[] args)
    {
        final String directory = args[0];
        final String ipc = args[1];
        try (AeronArchive archive = AeronArchive.connect(context(directory, ipc)))
        {
            final Aeron aeron = archive.context().aeron();
            final String live = "aeron:ipc?term-length=64k";
            final ExclusivePublication publication = archive.addRecordedExclusivePublication(live, 1201);
            final CountersReader counters = aeron.countersReader();
            int counterId = CountersReader.NULL_COUNTER_ID;
            while (CountersReader.NULL_COUNTER_ID == counterId)
            {
                counterId = RecordingPos.findCounterIdBySession(counters, publication.sessionId(), archive.archiveId());
                Thread.yield();
            }
            final long id = RecordingPos.getRecordingId(counters, counterId);
            System.out.println("position\t" + RecordingPos.isActive(counters, counterId, id) + "\t" +
                RecordingPos.getSourceIdentity(counters, counterId) + " " + counters.getCounterLabel(counterId));
            refused("purge active", () -> archive.purgeRecording(id));
            refused("truncate active", () -> archive.truncateRecording(id, 0));
            refused("extend active", () -> archive.extendRecording(id, live, 1201, SourceLocation.LOCAL));
            final UnsafeBuffer message = new UnsafeBuffer(new byte[100]);
            while (publication.offer(message, 0, message.capacity()) < 0)
            {
                Thread.yield();
            }
            publication.close();
            while (archive.getStopPosition(id) == AeronArchive.NULL_POSITION)
            {
                Thread.yield();
            }

            refused("replicate", () -> archive.replicate(id, 10, "aeron:udp?endpoint=127.0.0.1:9", new ReplicationParams()));
            refused("stop replication", () -> archive.stopReplication(7));
            refused("detach", () -> archive.detachSegments(id, 0));
            refused("delete detached", () -> archive.deleteDetachedSegments(id));
            refused("purge segments", () -> archive.purgeSegments(id, 0));
            refused("attach", () -> archive.attachSegments(id));
            refused("migrate", () -> archive.migrateSegments(id, id + 1));

            refused("unknown recording", () -> archive.startReplay(4711, 0, 32, live, 1202));
            refused("position off the grid", () -> archive.startReplay(id, 33, 32, live, 1202));
            refused("position within a frame", () -> archive.startReplay(id, 32, 32, live, 1202));
            refused("position at the end", () -> archive.startReplay(id, archive.getStopPosition(id), 32, live, 1202));
            refused("negative length", () -> archive.startReplay(id, 0, -7, live, 1202));
            refused("truncate within a frame", () -> archive.truncateRecording(id, 32));
            refused("extend other stream", () -> archive.extendRecording(id, live, 9, SourceLocation.LOCAL));
            refused("malformed channel", () -> archive.startRecording("udp://x", 1, SourceLocation.LOCAL));
            refused("purge unknown", () -> archive.purgeRecording(4711));
            refused("truncate unknown", () -> archive.truncateRecording(4711, 0));
            refused("stop unknown", () -> archive.stopRecording("aeron:ipc", 4711));
            refused("find below 0", () -> archive.findLastMatchingRecording(-1, "", 1, 1));
            refused("update channel", () -> archive.updateChannel(id, "aeron:ipc?alias=renamed"));
            refused("update unknown", () -> archive.updateChannel(4711, live));
            refused("purge", () -> archive.purgeRecording(id));
            refused("purged", () -> archive.getStartPosition(id));

            for (int type = 101; type <= 112; type++)
            {
                final int found = ArchiveCounters.find(counters, type, archive.archiveId());
                System.out.println("counter\t" + type + "\t" + counters.getCounterLabel(found));
            }
            System.out.println("archive\t" + archive.archiveId() + "\t" + archive.controlSessionId());
        }
        System.out.println("DONE");
    }
}
