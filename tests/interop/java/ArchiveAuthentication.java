import io.aeron.archive.client.AeronArchive;
import io.aeron.archive.client.ArchiveException;
import io.aeron.security.Authenticator;
import io.aeron.security.AuthenticatorSupplier;
import io.aeron.security.CredentialsSupplier;
import io.aeron.security.SessionProxy;
import io.aeron.security.SimpleAuthenticator;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;

/**
 * An unmodified Java client that says who it is, and authenticators for an unmodified Java archive.
 *
 * usage: ArchiveAuthentication DIR CREDENTIALS ANSWER
 *
 * Prints the text of each challenge, then what its requests are told, a line each.
 */
public class ArchiveAuthentication
{
    private static byte[] bytes(final String text)
    {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    public static void main(final String[] args)
    {
        final CredentialsSupplier supplier = new CredentialsSupplier()
        {
            public byte[] encodedCredentials()
            {
                return bytes(args[1]);
            }

            public byte[] onChallenge(final byte[] challenge)
            {
                System.out.println("CHALLENGED " + new String(challenge, StandardCharsets.UTF_8));
                return bytes(args[2]);
            }
        };
        final AeronArchive.Context context = new AeronArchive.Context()
            .aeronDirectoryName(args[0])
            .controlRequestChannel("aeron:ipc")
            .controlResponseChannel("aeron:ipc")
            .credentialsSupplier(supplier);
        try (AeronArchive archive = AeronArchive.connect(context))
        {
            System.out.println("CONNECTED");
            archive.listRecordings(0, 10, (a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) -> {});
            System.out.println("LISTED");
            archive.stopAllReplays(-1);
            System.out.println("STOPPED");
        }
        catch (final ArchiveException refusal)
        {
            System.out.println("REFUSED " + refusal.errorCode() + " " + refusal.getMessage());
        }
    }

    /** One user with a secret. */
    public static class Simple implements AuthenticatorSupplier
    {
        public Authenticator get()
        {
            return new SimpleAuthenticator.Builder().principal(bytes("alice"), bytes("alice:secret")).newInstance();
        }
    }

    /** Asks each client for the answer to a question. */
    public static class Asking implements AuthenticatorSupplier
    {
        public Authenticator get()
        {
            final Set<Long> proven = new HashSet<>();
            final Set<Long> answered = new HashSet<>();
            return new Authenticator()
            {
                public void onConnectRequest(final long sessionId, final byte[] credentials, final long nowMs)
                {
                }

                public void onChallengeResponse(final long sessionId, final byte[] answer, final long nowMs)
                {
                    answered.add(sessionId);
                    if (Arrays.equals(answer, bytes("it is me")))
                    {
                        proven.add(sessionId);
                    }
                }

                public void onConnectedSession(final SessionProxy session, final long nowMs)
                {
                    session.challenge(bytes("who is there?"));
                }

                public void onChallengedSession(final SessionProxy session, final long nowMs)
                {
                    if (proven.contains(session.sessionId()))
                    {
                        session.authenticate(bytes("asked"));
                    }
                    else if (answered.contains(session.sessionId()))
                    {
                        session.reject();
                    }
                }
            };
        }
    }
}
