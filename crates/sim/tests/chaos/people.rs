//! Publishers and subscribers, and what each subscriber must read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use headrace_client::{
    Client, ClientError, ExclusivePublication, FragmentAssembler, Image, Offer, Publication, Subscription,
};

/// Who published a message, and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) publisher: u64,
    pub(crate) number: u64,
}

impl Stamp {
    pub(crate) const LENGTH: usize = 16;

    /// The message: the stamp again and again, so that lost or foreign bytes show.
    fn message(self) -> Vec<u8> {
        let length = Self::LENGTH + self.number as usize * 131 % 3_000;
        self.bytes().into_iter().cycle().take(length).collect()
    }

    pub(crate) fn bytes(self) -> Vec<u8> {
        [self.publisher.to_le_bytes(), self.number.to_le_bytes()].concat()
    }

    /// The stamp at the start of a message.
    pub(crate) fn read(message: &[u8]) -> Self {
        let word = |at: usize| u64::from_le_bytes(message[at..at + 8].try_into().unwrap());
        let (publisher, number) = (word(0), word(8));
        Self { publisher, number }
    }

    /// Who published a message, and its number; its other bytes must be as these say.
    pub(crate) fn of(message: &[u8]) -> Self {
        let stamp = Self::read(message);
        assert!(message == stamp.message(), "damaged bytes of {stamp:?}");
        stamp
    }
}

/// A publication of one publisher, or one that several of a client share.
pub(crate) enum Handle {
    Exclusive(ExclusivePublication),
    Shared(Publication),
}

impl Handle {
    /// True when the stream takes the message.
    pub(crate) fn offer(&mut self, message: &[u8]) -> bool {
        let offered = match self {
            Self::Exclusive(publication) => publication.offer(message),
            Self::Shared(publication) => publication.offer(message),
        };
        matches!(offered, Ok(Offer::Position(_)))
    }

    /// Claims room and leaves it, as a program that is killed between the two halves of a publish.
    pub(crate) fn leave_a_hole(&self) {
        match self {
            Self::Exclusive(publication) => std::mem::forget(publication.try_claim(200)),
            Self::Shared(publication) => std::mem::forget(publication.try_claim(200)),
        }
    }

    pub(crate) fn session_id(&self) -> i32 {
        match self {
            Self::Exclusive(publication) => publication.session_id(),
            Self::Shared(publication) => publication.session_id(),
        }
    }

    pub(crate) fn is_connected(&self) -> bool {
        match self {
            Self::Exclusive(publication) => publication.is_connected(),
            Self::Shared(publication) => publication.is_connected(),
        }
    }
}

pub(crate) struct Publisher {
    pub(crate) node: usize,
    pub(crate) stream: usize,
    pub(crate) id: u64,
    next: u64,
    pub(crate) handle: Handle,
}

impl Publisher {
    pub(crate) fn new(
        node: usize,
        client: &Client,
        (stream, channel): (usize, &str),
        paths: &[String],
        id: u64,
        is_shared: bool,
    ) -> Result<Self, ClientError> {
        let stream_id = stream as i32;
        let handle = if is_shared {
            Handle::Shared(client.add_publication(channel, stream_id)?)
        } else {
            Handle::Exclusive(client.add_exclusive_publication(channel, stream_id)?)
        };
        for path in paths {
            match &handle {
                Handle::Shared(publication) => publication.destinations().add(path)?,
                Handle::Exclusive(publication) => publication.destinations().add(path)?,
            };
        }
        Ok(Self {
            node,
            stream,
            id,
            next: 0,
            handle,
        })
    }

    /// What a subscriber expects after all that was published.
    pub(crate) fn published(&self) -> Stamp {
        Stamp {
            publisher: self.id,
            number: self.next,
        }
    }

    pub(crate) fn offer(&mut self) -> bool {
        let message = self.published().message();
        let is_accepted = self.handle.offer(&message);
        self.next += u64::from(is_accepted);
        is_accepted
    }
}

/// How a subscriber is tied to its streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tie {
    Tethered,
    Untethered,
    Spy,
}

/// How far a subscriber has read a publisher, and through which image.
#[derive(Clone, Copy)]
pub(crate) struct Progress {
    next: u64,
    image: ImageName,
}

/// An image, and where its subscriber joined it: one that joins the same image again has missed what was between.
pub(crate) type ImageName = Option<(i64, i64)>;

pub(crate) fn image_name(image: Option<Arc<Image>>) -> ImageName {
    image.map(|image| (image.correlation_id(), image.join_position()))
}

pub(crate) struct Subscriber {
    pub(crate) node: usize,
    pub(crate) stream: usize,
    pub(crate) tie: Tie,
    /// It reads nothing before this time.
    pub(crate) asleep_until_ns: i64,
    /// It may lose an image, and join the same one again later.
    may_rejoin: bool,
    /// What it listens at, if its channel does not say so. Those of its stream on its node share that.
    pub(crate) paths: Vec<String>,
    subscription: Subscription,
    assembler: FragmentAssembler,
    read: BTreeMap<u64, Progress>,
}

impl Subscriber {
    pub(crate) fn new(
        node: usize,
        client: &Client,
        (stream, channel): (usize, &str),
        paths: Vec<String>,
        tie: Tie,
        may_rejoin: bool,
    ) -> Result<Self, ClientError> {
        let channel = match tie {
            Tie::Tethered => channel.to_owned(),
            Tie::Untethered => format!("{channel}|tether=false"),
            Tie::Spy => format!("aeron-spy:{channel}"),
        };
        let subscriber = Self {
            node,
            stream,
            tie,
            asleep_until_ns: 0,
            may_rejoin,
            paths,
            subscription: client.add_subscription(&channel, stream as i32, Default::default())?,
            assembler: FragmentAssembler::new(),
            read: BTreeMap::new(),
        };
        subscriber.add_paths()?;
        Ok(subscriber)
    }

    /// Adds the paths that are not there.
    pub(crate) fn add_paths(&self) -> Result<(), ClientError> {
        let bound = self.subscription.status().local_socket_addresses();
        let port = |address: &str| address.rsplit(':').next().map(str::to_owned);
        for path in &self.paths {
            if !bound.iter().any(|address| port(address) == port(path)) {
                self.subscription.destinations().add(path)?;
            }
        }
        Ok(())
    }

    /// Removes a path. It is gone already where another subscriber, or the driver, was faster.
    pub(crate) fn remove_path(&self, path: usize) -> Result<(), ClientError> {
        self.subscription.destinations().remove(&self.paths[path])
    }

    /// Its node, and what the driver there knows it by.
    pub(crate) fn name(&self) -> (usize, i64) {
        (self.node, self.subscription.registration_id())
    }

    pub(crate) fn poll(&mut self) {
        let (assembler, read, tie) = (&mut self.assembler, &mut self.read, self.tie);
        let may_rejoin = self.may_rejoin;
        let subscription = &self.subscription;
        let polled = subscription.poll(
            |payload, header| {
                assembler.on_fragment(payload, header, |message, header| {
                    let image = image_name(subscription.image_by_session_id(header.session_id()));
                    let before = note(read, Stamp::of(message), image, tie);
                    let has_rejoined = before.is_some_and(|before| is_rejoined(before.image, image));
                    assert!(may_rejoin || !has_rejoined, "joined {image:?} again");
                });
            },
            50,
        );
        polled.unwrap();
    }

    /// The sessions of its images: no two images of a subscription are of the same.
    pub(crate) fn sessions(&self) -> BTreeSet<i32> {
        let images = self.subscription.images();
        let sessions: BTreeSet<i32> = images.iter().map(|image| image.session_id()).collect();
        assert_eq!(
            sessions.len(),
            images.len(),
            "two images of a session: {images:?}"
        );
        sessions
    }

    /// Rejects one of its images. True when the driver did so.
    pub(crate) fn reject(&self, choice: usize) -> bool {
        let images = self.subscription.images();
        let image = (!images.is_empty()).then(|| &images[choice % images.len()]);
        image.is_some_and(|image| image.reject("it is not wanted").is_ok())
    }

    pub(crate) fn has_read(&self, published: &Stamp) -> bool {
        let progress = self.read.get(&published.publisher);
        progress.is_some_and(|progress| progress.next == published.number)
    }
}

/// In an image messages follow each other; a new image may have missed some, and repeats none. An untethered subscriber
/// that was left behind joins again where the others are, and one of them may be further back.
///
/// Returns what was read before.
pub(crate) fn note(
    read: &mut BTreeMap<u64, Progress>,
    stamp: Stamp,
    image: ImageName,
    tie: Tie,
) -> Option<Progress> {
    let next = stamp.number + 1;
    let before = read.insert(stamp.publisher, Progress { next, image })?;
    let is_new = stamp.number >= before.next || tie == Tie::Untethered;
    assert!(is_new, "{stamp:?} again, after {}", before.next);
    let is_next = stamp.number == before.next;
    assert!(
        is_next || image != before.image,
        "{stamp:?}, and not {}",
        before.next
    );
    Some(before)
}

/// True for two lives of one image.
fn is_rejoined(before: ImageName, now: ImageName) -> bool {
    let ids = before.zip(now);
    ids.is_some_and(|(before, now)| before.0 == now.0 && before.1 != now.1)
}
