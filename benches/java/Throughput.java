import io.aeron.Aeron;
import io.aeron.Publication;
import io.aeron.Subscription;
import io.aeron.logbuffer.FragmentHandler;
import org.agrona.concurrent.BackoffIdleStrategy;
import org.agrona.concurrent.IdleStrategy;
import org.agrona.concurrent.UnsafeBuffer;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * The reference's side of the native throughput rows: one publisher thread, one thread that polls every subscriber,
 * drivers in other processes. Prints one line per window: messages of all subscribers and nanoseconds. Arguments after
 * the sixth are pairs of a driver's directory and a channel, one for each subscriber; without them there is one, beside
 * the publisher. `benches/native` does the same.
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
        final String[] subscribers = args.length > 6 ? Arrays.copyOfRange(args, 6, args.length) : new String[]{ dir, channel };
        final Map<String, Aeron> clients = new HashMap<>();
        final Subscription[] subscriptions = new Subscription[subscribers.length / 2];
        for (int i = 0; i < subscriptions.length; i++)
        {
            subscriptions[i] = client(clients, subscribers[2 * i]).addSubscription(subscribers[2 * i + 1], 1001);
        }
        final Publication publication = client(clients, dir).addPublication(channel, 1001);
        // A subscriber that comes to a stream that flows misses what was before it.
        for (final Subscription subscription : subscriptions)
        {
            while (!subscription.isConnected())
            {
                Thread.yield();
            }
        }
        final Thread publisher = new Thread(() -> publish(publication, minLength, maxLength, running));
        publisher.start();
        check(subscriptions, lengths(minLength, maxLength));
        measure(subscriptions, windows, windowNs);
        running.set(false);
        publisher.join();
        clients.values().forEach(Aeron::close);
    }

    /** One client for each driver's directory. */
    private static Aeron client(final Map<String, Aeron> clients, final String dir)
    {
        return clients.computeIfAbsent(dir, (name) -> Aeron.connect(new Aeron.Context().aeronDirectoryName(name)));
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

    /** Reads the first messages of each subscriber before anything is measured: each must have its number and its length. */
    private static void check(final Subscription[] subscriptions, final int[] lengths)
    {
        final int[][] checked = new int[subscriptions.length][1];
        final FragmentHandler[] handlers = new FragmentHandler[subscriptions.length];
        for (int i = 0; i < handlers.length; i++)
        {
            final int[] count = checked[i];
            handlers[i] = (buffer, offset, length, header) ->
            {
                final int expected = lengths[count[0]++ & (LENGTH_COUNT - 1)];
                final long number = buffer.getLong(offset);
                if (length != expected || number != count[0])
                {
                    System.err.println("message " + count[0] + " has number " + number + " and length " + length +
                        ", not length " + expected);
                    System.exit(1);
                }
            };
        }
        final IdleStrategy idle = new BackoffIdleStrategy();
        while (Arrays.stream(checked).anyMatch((count) -> count[0] < CHECKED_COUNT))
        {
            int taken = 0;
            for (int i = 0; i < handlers.length; i++)
            {
                taken += subscriptions[i].poll(handlers[i], 256);
            }
            idle.idle(taken);
        }
    }

    private static void measure(final Subscription[] subscriptions, final int windows, final long windowNs)
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
                int taken = 0;
                for (final Subscription subscription : subscriptions)
                {
                    taken += subscription.poll(handler, 256);
                }
                idle.idle(taken);
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
