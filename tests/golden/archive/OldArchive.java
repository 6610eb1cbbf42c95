import io.aeron.ExclusivePublication;
import io.aeron.archive.Archive;
import io.aeron.archive.ArchiveThreadingMode;
import io.aeron.archive.ArchivingMediaDriver;
import io.aeron.archive.client.AeronArchive;
import io.aeron.archive.codecs.SourceLocation;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import org.agrona.concurrent.UnsafeBuffer;

import java.io.File;

/**
 * Makes an archive's directory with the version of Aeron in the class path, and dies while it records.
 *
 * usage: OldArchive DRIVER_DIR ARCHIVE_DIR
 */
public class OldArchive
{
    private static final int STREAM = 1001;
    private static final int LENGTH = 3000;
    private static final String FRESH = "aeron:ipc?term-length=64k";
    private static final String LATER = FRESH + "|init-term-id=7|term-id=12|term-offset=96";

    private static long record(
        final AeronArchive archive, final String channel, final int stream, final int count, final boolean stops)
        throws InterruptedException
    {
        final ExclusivePublication publication = archive.context().aeron().addExclusivePublication(channel, stream);
        final String recorded = "aeron:ipc?session-id=" + publication.sessionId();
        archive.startRecording(recorded, stream, SourceLocation.LOCAL);
        final UnsafeBuffer message = new UnsafeBuffer(new byte[LENGTH]);
        for (int i = 0; i < count; i++)
        {
            message.setMemory(0, LENGTH, (byte)(i + 1));
            while (publication.offer(message, 0, LENGTH) < 0)
            {
                Thread.yield();
            }
        }
        long id = -1;
        while (id < 0)
        {
            Thread.sleep(1);
            id = archive.findLastMatchingRecording(0, "aeron:ipc", stream, publication.sessionId());
        }
        while (archive.getRecordingPosition(id) != publication.position())
        {
            Thread.sleep(1);
        }
        if (stops)
        {
            archive.stopRecording(recorded, stream);
            while (archive.getStopPosition(id) != publication.position())
            {
                Thread.sleep(1);
            }
        }
        return id;
    }

    public static void main(final String[] args) throws Exception
    {
        final MediaDriver.Context driver = new MediaDriver.Context().aeronDirectoryName(args[0])
            .threadingMode(ThreadingMode.SHARED).termBufferSparseFile(true);
        final Archive.Context archiving = new Archive.Context().aeronDirectoryName(args[0])
            .archiveDir(new File(args[1])).threadingMode(ArchiveThreadingMode.SHARED).segmentFileLength(128 * 1024)
            .controlChannel("aeron:udp?endpoint=127.0.0.1:28010")
            .recordingEventsChannel("aeron:udp?endpoint=127.0.0.1:28030")
            .localControlChannel(FRESH).localControlStreamId(11);
        archiving.getClass().getMethod("maxCatalogEntries", long.class).invoke(archiving, 16L);
        ArchivingMediaDriver.launch(driver, archiving);
        final AeronArchive archive = AeronArchive.connect(new AeronArchive.Context().aeronDirectoryName(args[0])
            .controlRequestChannel(FRESH).controlRequestStreamId(11)
            .controlResponseChannel(FRESH).controlResponseStreamId(21));
        record(archive, FRESH, STREAM, 60, true);
        record(archive, LATER, STREAM + 1, 100, true);
        record(archive, LATER, STREAM + 2, 0, true);
        record(archive, "aeron:ipc?term-length=1m", STREAM + 3, 4, true);
        final long purged = record(archive, LATER, STREAM + 4, 100, true);
        try
        {
            AeronArchive.class.getMethod("purgeSegments", long.class, long.class)
                .invoke(archive, purged, 5L * 65536 + 131072);
        }
        catch (final NoSuchMethodException tooOld)
        {
            System.out.println("no segments are purged");
        }
        record(archive, LATER, STREAM + 5, 60, false);
        Runtime.getRuntime().halt(0);
    }
}
