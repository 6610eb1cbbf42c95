import io.aeron.Aeron;
import io.aeron.Publication;
import io.aeron.Subscription;
import org.agrona.concurrent.UnsafeBuffer;

import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/**
 * Adds and removes destinations of a publication and of a subscription in every form that a client has: at once and
 * asynchronously, by channel and by the id of the command that added it.
 *
 * usage: Destinations publisherDir subscriberDir port...: six of them
 */
public final class Destinations
{
    private static final long DEADLINE_NS = TimeUnit.SECONDS.toNanos(120);
    private static final int STREAM_ID = 9;
    private static final int LOCAL_STREAM_ID = 10;
    private static final int COUNT = 10;
    private static final int RECEIVERS = 5;

    public static void main(final String[] args) throws Exception
    {
        final String[] channels = new String[RECEIVERS + 1];
        for (int i = 0; i < channels.length; i++)
        {
            channels[i] = "aeron:udp?endpoint=127.0.0.1:" + args[2 + i];
        }
        try (Aeron sending = Aeron.connect(new Aeron.Context().aeronDirectoryName(args[0]));
            Aeron receiving = Aeron.connect(new Aeron.Context().aeronDirectoryName(args[1])))
        {
            System.out.println("READY");
            sendToSome(sending, receiving, channels);
            receiveLocally(sending, channels[RECEIVERS]);
            System.out.println("DONE");
        }
    }

    /**
     * Of five receivers the first one stays, and each other goes in a way of its own.
     */
    private static void sendToSome(final Aeron sending, final Aeron receiving, final String[] channels)
        throws Exception
    {
        final Subscription[] receivers = new Subscription[RECEIVERS];
        final long[] ids = new long[RECEIVERS];
        final Publication publication =
            sending.addPublication("aeron:udp?control-mode=manual|term-length=64k|fc=min,t:1s", STREAM_ID);
        for (int i = 0; i < RECEIVERS; i++)
        {
            receivers[i] = receiving.addSubscription(channels[i], STREAM_ID);
            if (i < 2)
            {
                publication.addDestination(channels[i]);
            }
            else
            {
                ids[i] = publication.asyncAddDestination(channels[i]);
                awaitEnd(sending, ids[i]);
            }
            final Subscription receiver = receivers[i];
            await("receiver " + i, receiver::isConnected);
        }

        expect(publication, new boolean[]{ true, true, true, true, true }, receivers);
        publication.removeDestination(channels[1]);
        expect(publication, new boolean[]{ true, false, true, true, true }, receivers);
        publication.removeDestination(ids[2]);
        expect(publication, new boolean[]{ true, false, false, true, true }, receivers);
        awaitEnd(sending, publication.asyncRemoveDestination(channels[3]));
        expect(publication, new boolean[]{ true, false, false, false, true }, receivers);
        awaitEnd(sending, publication.asyncRemoveDestination(ids[4]));
        expect(publication, new boolean[]{ true, false, false, false, false }, receivers);
    }

    /**
     * What the driver's own clients publish, as destinations of a subscription.
     */
    private static void receiveLocally(final Aeron aeron, final String spied) throws Exception
    {
        final Publication network = aeron.addPublication(spied + "|ssc=true|term-length=64k", LOCAL_STREAM_ID);
        final Publication local = aeron.addPublication("aeron:ipc?term-length=64k", LOCAL_STREAM_ID);
        final Subscription subscription = aeron.addSubscription("aeron:udp?control-mode=manual", LOCAL_STREAM_ID);

        subscription.addDestination("aeron-spy:" + spied);
        await("the spy's image", () -> subscription.imageCount() == 1);
        expect(network, new boolean[]{ true }, subscription);
        awaitEnd(aeron, subscription.asyncAddDestination("aeron:ipc"));
        await("the local image", () -> subscription.imageCount() == 2);
        expect(local, new boolean[]{ true }, subscription);
        subscription.removeDestination("aeron-spy:" + spied);
        await("the end of the spy", () -> subscription.imageCount() == 1);
        awaitEnd(aeron, subscription.asyncRemoveDestination("aeron:ipc"));
        await("the end of the local image", () -> subscription.imageCount() == 0);
    }

    /**
     * Sends some messages, and insists that just the subscriptions that are told get them, each once.
     */
    private static void expect(
        final Publication publication, final boolean[] told, final Subscription... subscriptions) throws Exception
    {
        final UnsafeBuffer buffer = new UnsafeBuffer(new byte[64]);
        final int[] counts = new int[subscriptions.length];
        final int[] expected = new int[subscriptions.length];
        for (int i = 0; i < told.length; i++)
        {
            expected[i] = told[i] ? COUNT : 0;
        }
        for (int sent = 0; sent < COUNT; sent++)
        {
            await("room for a message", () ->
            {
                poll(subscriptions, counts);
                return publication.offer(buffer) > 0;
            });
        }
        await("the messages of " + Arrays.toString(told), () ->
        {
            poll(subscriptions, counts);
            return Arrays.equals(counts, expected);
        });
    }

    private static void poll(final Subscription[] subscriptions, final int[] counts)
    {
        for (int i = 0; i < subscriptions.length; i++)
        {
            final int index = i;
            subscriptions[i].poll((buffer, offset, length, header) -> counts[index]++, COUNT);
        }
    }

    private static void awaitEnd(final Aeron aeron, final long correlationId) throws Exception
    {
        await("the end of command " + correlationId, () -> !aeron.isCommandActive(correlationId));
    }

    private static void await(final String what, final BooleanSupplier condition) throws Exception
    {
        final long deadline = System.nanoTime() + DEADLINE_NS;
        while (!condition.getAsBoolean())
        {
            if (System.nanoTime() > deadline)
            {
                throw new AssertionError("not in time: " + what);
            }
            Thread.sleep(1);
        }
    }
}
