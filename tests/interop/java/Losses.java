import io.aeron.driver.DataPacketDispatcher;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ReceiveChannelEndpointSupplier;
import io.aeron.driver.ext.DebugReceiveChannelEndpoint;
import io.aeron.driver.ext.FixedLossGenerator;
import io.aeron.driver.ext.LossGenerator;
import io.aeron.driver.ext.MultiGapLossGenerator;
import io.aeron.driver.media.ReceiveChannelEndpoint;
import io.aeron.driver.media.UdpChannel;
import org.agrona.concurrent.status.AtomicCounter;

import java.util.Arrays;

/**
 * Subscriptions' sockets of the Java driver that lose the first transmission of parts of a term.
 *
 * The property `losses` is `TERM_ID,OFFSET,LENGTH` for one hole or `TERM_ID,DISTANCE,LENGTH,COUNT` for many.
 */
public final class Losses implements ReceiveChannelEndpointSupplier
{
    public ReceiveChannelEndpoint newInstance(
        final UdpChannel channel,
        final DataPacketDispatcher dispatcher,
        final AtomicCounter status,
        final MediaDriver.Context context)
    {
        final int[] numbers =
            Arrays.stream(System.getProperty("losses").split(",")).mapToInt(Integer::parseInt).toArray();
        final LossGenerator data = numbers.length == 3 ?
            new FixedLossGenerator(numbers[0], numbers[1], numbers[2]) :
            new MultiGapLossGenerator(numbers[0], numbers[1], numbers[2], numbers[3]);
        final LossGenerator control = (address, buffer, length) -> false;
        return new DebugReceiveChannelEndpoint(channel, dispatcher, status, context, data, control);
    }
}
