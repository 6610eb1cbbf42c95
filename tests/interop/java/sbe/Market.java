import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.HexFormat;

import org.agrona.concurrent.UnsafeBuffer;

import market.ORDER.*;

/**
 * Messages of the market schema through the codecs that the reference's tool generates. `ORDER` is replaced before
 * compiling, because the tool makes one package for each byte order.
 *
 * usage: Market golden   prints a name and the bytes of one message of each template
 *        Market echo     reads such lines, decodes each message, encodes what it found anew, and prints that
 */
public final class Market
{
    private static final MessageHeaderEncoder HEADER = new MessageHeaderEncoder();
    private static final MessageHeaderDecoder HEADER_DECODER = new MessageHeaderDecoder();
    private static final UnsafeBuffer OUT = new UnsafeBuffer(new byte[1 << 16]);

    public static void main(final String[] args) throws IOException
    {
        if ("golden".equals(args[0]))
        {
            print("Trade", trade());
            print("Order", order());
            print("Text", text());
            print("Book", book());
            print("Tree", tree());
            print("Evolved", evolved());
        }
        else
        {
            final BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
            for (String line = lines.readLine(); line != null; line = lines.readLine())
            {
                final String[] words = line.split(" ");
                print(words[0], echo(words[0], new UnsafeBuffer(HexFormat.of().parseHex(words[1]))));
            }
        }
    }

    private static void print(final String name, final int limit)
    {
        final byte[] bytes = new byte[limit];
        OUT.getBytes(0, bytes);
        System.out.println(name + " " + HexFormat.of().formatHex(bytes));
        OUT.setMemory(0, OUT.capacity(), (byte)0);
    }

    private static int trade()
    {
        return new TradeEncoder().wrapAndApplyHeader(OUT, 0, HEADER)
            .tradeId(0xFEDCBA9876543210L)
            .orderId(-2)
            .price(101.25)
            .ratio(-0.5f)
            .quantity(4_000_000_000L)
            .delta(-70_000)
            .venueCode(65_000)
            .lag((short)-300)
            .priority((short)200)
            .tick((byte)-100)
            .limit();
    }

    private static int order()
    {
        final OrderEncoder encoder = new OrderEncoder().wrapAndApplyHeader(OUT, 0, HEADER);
        encoder.orderId(77).letter((byte)'x').side(Side.Sell).status(Status.Filled).region(Region.West);
        encoder.flags().clear().hidden(true).last(true);
        encoder.symbol("ABC");
        for (int i = 0; i < 4; i++)
        {
            encoder.key(i, (short)(250 + i));
        }
        for (int i = 0; i < 3; i++)
        {
            encoder.levels(i, i - 1);
        }
        encoder.weights(0, 0.25).weights(1, -1e300);
        encoder.quote().side(Side.Buy).size(3_000_000_000L).kind(Kind.Indicative);
        encoder.quote().price().mantissa(-12345);
        encoder.quote().marks().clear().a(true).b(true);
        encoder.quote().source().desk(60_000).code("xy");
        encoder.count(OrderEncoder.countNullValue()).parent(5).ceiling(OrderEncoder.ceilingNullValue());
        return encoder.limit();
    }

    private static int text()
    {
        return new TextEncoder().wrapAndApplyHeader(OUT, 0, HEADER)
            .textId(9)
            .title("plain")
            .body("h\u00e9llo \u4e16")
            .putAttachment(new byte[]{ 0, -1, 7 }, 0, 3)
            .limit();
    }

    private static int book()
    {
        final BookEncoder encoder = new BookEncoder().wrapAndApplyHeader(OUT, 0, HEADER).instrument(12);
        final BookEncoder.BidsEncoder bids = encoder.bidsCount(2);
        bids.next().size(10).price().mantissa(100);
        bids.next().size(20).price().mantissa(-200);
        encoder.fillsCount(3)
            .next().side(Side.Buy).orders(1)
            .next().side(Side.Sell).orders(2)
            .next().side(Side.NULL_VAL).orders(65_000);
        return encoder.comment("done").limit();
    }

    private static int tree()
    {
        final TreeEncoder encoder = new TreeEncoder().wrapAndApplyHeader(OUT, 0, HEADER).treeId(3);
        final TreeEncoder.BranchesEncoder branches = encoder.branchesCount(2);
        branches.next().branchId((short)1);
        branches.leavesCount(2).next().weight(1.5f).label("a").next().weight(2.5f).label("bb");
        branches.note("first");
        branches.next().branchId((short)2);
        branches.leavesCount(0);
        branches.note("");
        return encoder.putRoot(new byte[]{ 1, 2 }, 0, 2).limit();
    }

    private static int evolved()
    {
        final EvolvedEncoder encoder = new EvolvedEncoder().wrapAndApplyHeader(OUT, 0, HEADER);
        encoder.first(1).second(2).fourth(Status.Cancelled);
        encoder.third().side(Side.Sell).size(4).kind(Kind.Firm).price().mantissa(3);
        encoder.third().marks().clear().b(true);
        encoder.third().source().desk(5).code("abc");
        encoder.itemsCount(2).next().old((short)1).young(1.5).next().old((short)2).young(-2.5);
        encoder.extrasCount(1).next().value((short)-7);
        return encoder.note("n").putMore(new byte[]{ 9 }, 0, 1).limit();
    }

    private static int echo(final String name, final UnsafeBuffer in)
    {
        switch (name)
        {
            case "Trade":
                return echoTrade(new TradeDecoder().wrapAndApplyHeader(in, 0, HEADER_DECODER));
            case "Order":
                return echoOrder(new OrderDecoder().wrapAndApplyHeader(in, 0, HEADER_DECODER));
            case "Text":
                return echoText(new TextDecoder().wrapAndApplyHeader(in, 0, HEADER_DECODER));
            case "Book":
                return echoBook(new BookDecoder().wrapAndApplyHeader(in, 0, HEADER_DECODER));
            case "Tree":
                return echoTree(new TreeDecoder().wrapAndApplyHeader(in, 0, HEADER_DECODER));
            case "Evolved":
                return echoEvolved(new EvolvedDecoder().wrapAndApplyHeader(in, 0, HEADER_DECODER));
            default:
                throw new IllegalArgumentException(name);
        }
    }

    private static int echoTrade(final TradeDecoder d)
    {
        return new TradeEncoder().wrapAndApplyHeader(OUT, 0, HEADER)
            .tradeId(d.tradeId()).orderId(d.orderId()).price(d.price()).ratio(d.ratio()).quantity(d.quantity())
            .delta(d.delta()).venueCode(d.venueCode()).lag(d.lag()).priority(d.priority()).tick(d.tick())
            .limit();
    }

    private static int echoOrder(final OrderDecoder d)
    {
        final OrderEncoder e = new OrderEncoder().wrapAndApplyHeader(OUT, 0, HEADER);
        e.orderId(d.orderId()).letter(d.letter()).side(d.side()).status(d.status()).region(d.region());
        e.flags().clear().hidden(d.flags().hidden()).postOnly(d.flags().postOnly()).last(d.flags().last());
        e.symbol(d.symbol());
        for (int i = 0; i < 4; i++)
        {
            e.key(i, d.key(i));
        }
        for (int i = 0; i < 3; i++)
        {
            e.levels(i, d.levels(i));
        }
        e.weights(0, d.weights(0)).weights(1, d.weights(1));
        echoQuote(d.quote(), e.quote());
        e.count(d.count()).parent(d.parent()).ceiling(d.ceiling());
        return e.limit();
    }

    private static void echoQuote(final QuoteDecoder d, final QuoteEncoder e)
    {
        e.side(d.side()).size(d.size()).kind(d.kind());
        e.price().mantissa(d.price().mantissa());
        e.marks().clear().a(d.marks().a()).b(d.marks().b());
        e.source().desk(d.source().desk()).code(d.source().code());
    }

    private static int echoText(final TextDecoder d)
    {
        final TextEncoder e = new TextEncoder().wrapAndApplyHeader(OUT, 0, HEADER).textId(d.textId());
        e.title(d.title()).body(d.body());
        final byte[] attachment = new byte[d.attachmentLength()];
        d.getAttachment(attachment, 0, attachment.length);
        return e.putAttachment(attachment, 0, attachment.length).limit();
    }

    private static int echoBook(final BookDecoder d)
    {
        final BookEncoder e = new BookEncoder().wrapAndApplyHeader(OUT, 0, HEADER).instrument(d.instrument());
        final BookDecoder.BidsDecoder bids = d.bids();
        final BookEncoder.BidsEncoder newBids = e.bidsCount(bids.count());
        while (bids.hasNext())
        {
            bids.next();
            newBids.next().size(bids.size()).price().mantissa(bids.price().mantissa());
        }
        final BookDecoder.FillsDecoder fills = d.fills();
        final BookEncoder.FillsEncoder newFills = e.fillsCount(fills.count());
        while (fills.hasNext())
        {
            fills.next();
            newFills.next().side(fills.side()).orders(fills.orders());
        }
        return e.comment(d.comment()).limit();
    }

    private static int echoTree(final TreeDecoder d)
    {
        final TreeEncoder e = new TreeEncoder().wrapAndApplyHeader(OUT, 0, HEADER).treeId(d.treeId());
        final TreeDecoder.BranchesDecoder branches = d.branches();
        final TreeEncoder.BranchesEncoder newBranches = e.branchesCount(branches.count());
        while (branches.hasNext())
        {
            branches.next();
            newBranches.next().branchId(branches.branchId());
            final TreeDecoder.BranchesDecoder.LeavesDecoder leaves = branches.leaves();
            final TreeEncoder.BranchesEncoder.LeavesEncoder newLeaves = newBranches.leavesCount(leaves.count());
            while (leaves.hasNext())
            {
                leaves.next();
                newLeaves.next().weight(leaves.weight()).label(leaves.label());
            }
            newBranches.note(branches.note());
        }
        final byte[] root = new byte[d.rootLength()];
        d.getRoot(root, 0, root.length);
        return e.putRoot(root, 0, root.length).limit();
    }

    private static int echoEvolved(final EvolvedDecoder d)
    {
        final EvolvedEncoder e = new EvolvedEncoder().wrapAndApplyHeader(OUT, 0, HEADER);
        e.first(d.first()).second(d.second()).fourth(d.fourth());
        if (d.actingVersion() >= EvolvedDecoder.thirdSinceVersion())
        {
            echoQuote(d.third(), e.third());
        }
        final EvolvedDecoder.ItemsDecoder items = d.items();
        final EvolvedEncoder.ItemsEncoder newItems = e.itemsCount(items.count());
        while (items.hasNext())
        {
            items.next();
            newItems.next().old(items.old()).young(items.young());
        }
        final EvolvedDecoder.ExtrasDecoder extras = d.extras();
        final EvolvedEncoder.ExtrasEncoder newExtras = e.extrasCount(extras.count());
        while (extras.hasNext())
        {
            newExtras.next().value(extras.next().value());
        }
        e.note(d.note());
        final byte[] more = new byte[d.moreLength()];
        d.getMore(more, 0, more.length);
        return e.putMore(more, 0, more.length).limit();
    }
}
