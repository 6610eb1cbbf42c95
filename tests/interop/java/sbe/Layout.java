import java.lang.reflect.Method;
import java.util.TreeSet;

/**
 * Prints the layout of generated decoders: what they know of their template and of every item in it.
 *
 * usage: Layout CLASS ...
 */
public final class Layout
{
    public static void main(final String[] names) throws ReflectiveOperationException
    {
        for (final String name : names)
        {
            final Class<?> type;
            try
            {
                type = Class.forName(name);
            }
            catch (final ClassNotFoundException ex)
            {
                System.out.println(name + " missing");
                continue;
            }
            print(name, "template", type.getField("TEMPLATE_ID").get(null));
            print(name, "block", type.getField("BLOCK_LENGTH").get(null));
            print(name, "version", type.getField("SCHEMA_VERSION").get(null));
            final TreeSet<String> lines = new TreeSet<>();
            for (final Method method : type.getMethods())
            {
                if (method.getName().matches("\\w+(EncodingOffset|EncodingLength|SinceVersion|HeaderLength)") &&
                    method.getParameterCount() == 0)
                {
                    lines.add(method.getName() + " " + method.invoke(null));
                }
            }
            lines.forEach((line) -> System.out.println(name + " " + line));
        }
    }

    private static void print(final String name, final String key, final Object value)
    {
        System.out.println(name + " " + key + " " + value);
    }
}
