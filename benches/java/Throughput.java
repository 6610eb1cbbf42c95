import io.aeron.Aeron;
import io.aeron.Publication;
import io.aeron.Subscription;
import io.aeron.logbuffer.FragmentHandler;
import org.agrona.concurrent.BackoffIdleStrategy;
import org.agrona.concurrent.IdleStrategy;
import org.agrona.concurrent.UnsafeBuffer;

import java.util.Random;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * The reference's side of the native throughput rows: one publisher thread, one subscriber thread, a driver in
 * another process. Prints one line per window: messages and nanoseconds. `benches/native` does the same.
 */
public final class Throughput
{
    private static final int LENGTH_COUNT = 1 << 16;
    private static final int CHECKED_COUNT = 100_000;

    public static void main(final String[] args) throws Exception
    {
        final String dir = args[0];
        final String channel = args[1];
        final int minLength = Integer.parseInt(args[2]);
        final int maxLength = Integer.parseInt(args[3]);
        final int windows = Integer.parseInt(args[4]);
        final long windowNs = Long.parseLong(args[5]) * 1_000_000L;
        final AtomicBoolean running = new AtomicBoolean(true);
        try (Aeron aeron = Aeron.connect(new Aeron.Context().aeronDirectoryName(dir));
            Subscription subscription = aeron.addSubscription(channel, 1001);
            Publication publication = aeron.addPublication(channel, 1001))
        {
            final Thread publisher = new Thread(() -> publish(publication, minLength, maxLength, running));
            publisher.start();
            check(subscription, lengths(minLength, maxLength));
            measure(subscription, windows, windowNs);
            running.set(false);
            publisher.join();
        }
    }

    private static void publish(
        final Publication publication, final int minLength, final int maxLength, final AtomicBoolean running)
    {
        final int[] lengths = lengths(minLength, maxLength);
        final UnsafeBuffer buffer = new UnsafeBuffer(new byte[maxLength]);
        final IdleStrategy idle = new BackoffIdleStrategy();
        int next = 0;
        while (running.get())
        {
            final int length = lengths[next++ & (LENGTH_COUNT - 1)];
            buffer.putLong(0, next);
            while (publication.offer(buffer, 0, length) < 0)
            {
                if (!running.get())
                {
                    return;
                }
                idle.idle();
            }
            idle.reset();
        }
    }

    /** The lengths of the messages, in turn; the publisher and the check draw the same. */
    private static int[] lengths(final int minLength, final int maxLength)
    {
        final Random random = new Random(7);
        final int[] lengths = new int[LENGTH_COUNT];
        for (int i = 0; i < LENGTH_COUNT; i++)
        {
            lengths[i] = minLength + random.nextInt(maxLength - minLength + 1);
        }
        return lengths;
    }

    /** Reads the first messages before anything is measured: each must have its number and its length. */
    private static void check(final Subscription subscription, final int[] lengths)
    {
        final int[] checked = new int[1];
        final FragmentHandler handler = (buffer, offset, length, header) ->
        {
            final int expected = lengths[checked[0]++ & (LENGTH_COUNT - 1)];
            final long number = buffer.getLong(offset);
            if (length != expected || number != checked[0])
            {
                System.err.println("message " + checked[0] + " has number " + number + " and length " + length +
                    ", not length " + expected);
                System.exit(1);
            }
        };
        final IdleStrategy idle = new BackoffIdleStrategy();
        while (checked[0] < CHECKED_COUNT)
        {
            idle.idle(subscription.poll(handler, 256));
        }
    }

    private static void measure(final Subscription subscription, final int windows, final long windowNs)
    {
        final long[] count = new long[1];
        final FragmentHandler handler = (buffer, offset, length, header) -> count[0]++;
        final IdleStrategy idle = new BackoffIdleStrategy();
        for (int window = 0; window < windows; window++)
        {
            count[0] = 0;
            final long start = System.nanoTime();
            long now = start;
            int polls = 0;
            while (now - start < windowNs)
            {
                idle.idle(subscription.poll(handler, 256));
                if ((++polls & 63) == 0)
                {
                    now = System.nanoTime();
                }
            }
            now = System.nanoTime();
            System.out.println(count[0] + " " + (now - start));
        }
    }
}
