import io.aeron.cluster.service.ClusterClock;

import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.concurrent.TimeUnit;

/** A cluster's clock in microseconds, of which the Java release has none. */
public class MicrosecondClock implements ClusterClock
{
    public TimeUnit timeUnit()
    {
        return TimeUnit.MICROSECONDS;
    }

    public long time()
    {
        return ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now());
    }
}
