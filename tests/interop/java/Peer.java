import io.aeron.Aeron;
import io.aeron.FragmentAssembler;
import io.aeron.Image;
import io.aeron.Publication;
import io.aeron.Subscription;
import io.aeron.logbuffer.FragmentHandler;
import io.aeron.logbuffer.Header;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.BackoffIdleStrategy;
import org.agrona.concurrent.IdleStrategy;
import org.agrona.concurrent.UnsafeBuffer;

import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The Java side of the interoperability tests: publishes or checks messages whose every byte follows from a
 * seed and an index, so that either side can be ours. `peer.py` has the same rule.
 *
 * Where a channel has `ts-offset=reserved`, the reserved value of each message is a time of this day, in nanoseconds.
 * Where it has `ts-offset=N`, so are the eight bytes from N on of each message that has them, and only the others are
 * as published.
 *
 * Message `index` of `seed`: i64 index, i64 seed, then bytes `(mix + position) & 0xff`, little-endian.
 */
public final class Peer
{
    private static final long DEADLINE_NS = TimeUnit.SECONDS.toNanos(120);
    private static final int UNSTAMPED = -1;
    private static final int RESERVED = -8;

    public static void main(final String[] args) throws Exception
    {
        final String dir = args[1];
        final String channel = args[2];
        final int streamId = Integer.parseInt(args[3]);
        final long count = Long.parseLong(args[4]);
        final Aeron.Context context = new Aeron.Context().aeronDirectoryName(dir);
        try (Aeron aeron = Aeron.connect(context))
        {
            switch (args[0])
            {
                case "publish" -> publish(
                    withDestinations(aeron.addPublication(channel, streamId), args),
                    count,
                    Integer.parseInt(args[5]),
                    Integer.parseInt(args[6]),
                    Long.parseLong(args[7]));
                case "subscribe" -> subscribe(
                    withDestinations(aeron.addSubscription(channel, streamId), args), count);
                case "request" -> request(aeron, args);
                case "answer" -> answer(aeron, args);
                default -> throw new IllegalArgumentException("unknown role " + args[0]);
            }
        }
    }

    private static Publication withDestinations(final Publication publication, final String[] args)
    {
        for (int i = 8; i < args.length; i++)
        {
            publication.addDestination(args[i]);
        }
        return publication;
    }

    private static Subscription withDestinations(final Subscription subscription, final String[] args)
    {
        for (int i = 5; i < args.length; i++)
        {
            subscription.addDestination(args[i]);
        }
        return subscription;
    }

    private static void publish(
        final Publication publication, final long count, final int minLength, final int maxLength, final long seed)
        throws Exception
    {
        final UnsafeBuffer buffer = new UnsafeBuffer(new byte[maxLength]);
        final IdleStrategy idle = new BackoffIdleStrategy();
        final long deadline = System.nanoTime() + DEADLINE_NS;
        System.out.println("READY");
        for (long index = 0; index < count; index++)
        {
            final int length = fill(buffer, seed, index, minLength, maxLength);
            long result;
            while ((result = publication.offer(buffer, 0, length)) < 0)
            {
                if (result == Publication.CLOSED || result == Publication.MAX_POSITION_EXCEEDED)
                {
                    throw new IllegalStateException("offer returned " + result);
                }
                if (System.nanoTime() > deadline)
                {
                    throw new IllegalStateException("offer " + index + " still returns " + result);
                }
                idle.idle();
            }
            idle.reset();
        }
        // The publisher stays until the last subscriber has left, so that lost messages can be repaired.
        while (publication.isConnected() && System.nanoTime() < deadline)
        {
            Thread.sleep(10);
        }
        System.out.println("DONE " + count);
    }

    private static void subscribe(final Subscription subscription, final long count)
    {
        final Checker checker = new Checker(stampOffset(subscription.channel()));
        final FragmentAssembler assembler = new FragmentAssembler(checker);
        final IdleStrategy idle = new BackoffIdleStrategy();
        final long deadline = System.nanoTime() + DEADLINE_NS;
        System.out.println("READY");
        while (checker.received < count)
        {
            idle.idle(subscription.poll(assembler, 64));
            if (System.nanoTime() > deadline)
            {
                throw new IllegalStateException("received " + checker.received + " of " + count);
            }
        }
        System.out.println("DONE " + checker.received);
    }

    /**
     * Sends messages, and insists that the same come back, and no others.
     */
    private static void request(final Aeron aeron, final String[] args)
    {
        final long count = Long.parseLong(args[4]);
        final int minLength = Integer.parseInt(args[5]);
        final int maxLength = Integer.parseInt(args[6]);
        final long seed = Long.parseLong(args[7]);
        final Subscription answers = aeron.addSubscription(args[8], Integer.parseInt(args[9]));
        final Publication requests = aeron.addPublication(
            args[2] + "|response-correlation-id=" + answers.registrationId(), Integer.parseInt(args[3]));
        final UnsafeBuffer buffer = new UnsafeBuffer(new byte[maxLength]);
        final Checker checker = new Checker(UNSTAMPED);
        final FragmentAssembler assembler = new FragmentAssembler(checker);
        final IdleStrategy idle = new BackoffIdleStrategy();
        final long deadline = System.nanoTime() + DEADLINE_NS;
        System.out.println("READY");
        long sent = 0;
        while (checker.received < count)
        {
            int work = answers.poll(assembler, 64);
            if (sent < count &&
                requests.offer(buffer, 0, fill(buffer, seed, sent, minLength, maxLength)) > 0)
            {
                sent++;
                work++;
            }
            idle.idle(work);
            if (System.nanoTime() > deadline)
            {
                throw new IllegalStateException("sent " + sent + ", received " + checker.received + " of " + count);
            }
        }
        if (checker.nextIndexBySeed.size() != 1)
        {
            throw new IllegalStateException("answers to others: " + checker.nextIndexBySeed);
        }
        System.out.println("DONE " + checker.received);
    }

    /**
     * Sends each message back to the one that sent it.
     */
    private static void answer(final Aeron aeron, final String[] args) throws Exception
    {
        final long count = Long.parseLong(args[4]);
        final int answersStreamId = Integer.parseInt(args[6]);
        final Subscription requests = aeron.addSubscription(args[2], Integer.parseInt(args[3]));
        final Map<Long, Publication> publications = new HashMap<>();
        final Queue<Answer> waiting = new ArrayDeque<>();
        final FragmentAssembler assembler = new FragmentAssembler((buffer, offset, length, header) ->
        {
            final byte[] bytes = new byte[length];
            buffer.getBytes(offset, bytes);
            final Publication publication = publications.computeIfAbsent(
                ((Image)header.context()).correlationId(),
                (id) -> aeron.addPublication(args[5] + "|response-correlation-id=" + id, answersStreamId));
            waiting.add(new Answer(publication, new UnsafeBuffer(bytes)));
        });
        final IdleStrategy idle = new BackoffIdleStrategy();
        final long deadline = System.nanoTime() + DEADLINE_NS;
        System.out.println("READY");
        long answered = 0;
        while (answered < count)
        {
            int work = waiting.isEmpty() ? requests.poll(assembler, 10) : 0;
            while (!waiting.isEmpty() && waiting.peek().offer())
            {
                waiting.remove();
                answered++;
                work++;
            }
            idle.idle(work);
            if (System.nanoTime() > deadline)
            {
                throw new IllegalStateException("answered " + answered + " of " + count);
            }
        }
        for (final Publication publication : publications.values())
        {
            while (publication.isConnected() && System.nanoTime() < deadline)
            {
                Thread.sleep(10);
            }
        }
        System.out.println("DONE " + answered);
    }

    private record Answer(Publication publication, UnsafeBuffer message)
    {
        boolean offer()
        {
            return publication.offer(message) > 0;
        }
    }

    /**
     * Insists that the messages of each seed come whole and in order.
     */
    private static final class Checker implements FragmentHandler
    {
        final Map<Long, Long> nextIndexBySeed = new HashMap<>();
        final int stampOffset;
        long received;

        Checker(final int stampOffset)
        {
            this.stampOffset = stampOffset;
        }

        public void onFragment(final DirectBuffer buffer, final int offset, final int length, final Header header)
        {
            final boolean isStampInPayload = stampOffset >= 0 && length >= stampOffset + 8;
            if (stampOffset == RESERVED)
            {
                checkStamp(header.reservedValue());
            }
            else if (isStampInPayload)
            {
                checkStamp(buffer.getLong(offset + stampOffset));
            }
            final long index = buffer.getLong(offset);
            final long seed = buffer.getLong(offset + 8);
            final long expected = nextIndexBySeed.getOrDefault(seed, 0L);
            if (index != expected)
            {
                throw new IllegalStateException("expected message " + expected + " of " + seed + ", got " + index);
            }
            final long mix = mix(seed, index);
            for (int i = 16; i < length; i++)
            {
                final boolean isStamp = isStampInPayload && i >= stampOffset && i < stampOffset + 8;
                if (!isStamp && buffer.getByte(offset + i) != (byte)(mix + i))
                {
                    throw new IllegalStateException("message " + index + " differs at byte " + i);
                }
            }
            nextIndexBySeed.put(seed, index + 1);
            received++;
        }
    }

    private static int stampOffset(final String channel)
    {
        final Matcher matcher = Pattern.compile("ts-offset=(reserved|\\d+)").matcher(channel);
        if (!matcher.find())
        {
            return UNSTAMPED;
        }
        return matcher.group(1).equals("reserved") ? RESERVED : Integer.parseInt(matcher.group(1));
    }

    private static void checkStamp(final long timeNs)
    {
        final long ageMs = System.currentTimeMillis() - TimeUnit.NANOSECONDS.toMillis(timeNs);
        if (Math.abs(ageMs) > TimeUnit.DAYS.toMillis(1))
        {
            throw new IllegalStateException("timestamp " + timeNs);
        }
    }

    private static int fill(
        final UnsafeBuffer buffer, final long seed, final long index, final int minLength, final int maxLength)
    {
        final long mix = mix(seed, index);
        final int length = minLength + (int)((mix >>> 33) % (maxLength - minLength + 1));
        buffer.putLong(0, index);
        buffer.putLong(8, seed);
        for (int i = 16; i < length; i++)
        {
            buffer.putByte(i, (byte)(mix + i));
        }
        return length;
    }

    private static long mix(final long seed, final long index)
    {
        final long product = (seed * 1_000_003L + index) * 0x9E3779B97F4A7C15L;
        return product ^ (product >>> 29);
    }
}
