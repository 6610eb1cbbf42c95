//! The conductor and one other agent with small queues: every order of their steps, walked to the end.
//!
//! Objects end on their own (a timer, a dead client); each takes two rounds of command and reply, as a publication
//! and then its endpoint do. SETUPs come from outside; each becomes a request and then one command. The agents
//! take turns in any order. From every state that can occur there must be a way to the state in which all is done.

use std::collections::{HashMap, HashSet, VecDeque};

/// Who declines to take what while its own outbox holds a backlog.
#[derive(Clone, Copy)]
struct Rule {
    /// The agent takes no command.
    agent_declines_commands: bool,
    /// The conductor takes no reply, since replies and requests share one queue.
    conductor_declines_replies: bool,
}

/// The rule of this crate.
const RULE: Rule = Rule {
    agent_declines_commands: false,
    conductor_declines_replies: false,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Command {
    /// End something; wants a reply. The number is of the rounds still to go.
    Remove(u8),
    /// The outcome of a request; wants no reply.
    Answer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Message {
    Reply(u8),
    Request,
}

/// A bounded queue and the backlog of its only sender.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Lane<T> {
    queue: VecDeque<T>,
    backlog: VecDeque<T>,
}

impl<T> Default for Lane<T> {
    fn default() -> Self {
        Self {
            queue: VecDeque::new(),
            backlog: VecDeque::new(),
        }
    }
}

impl<T> Lane<T> {
    fn flush(&mut self, capacity: usize) {
        while self.queue.len() < capacity
            && let Some(message) = self.backlog.pop_front()
        {
            self.queue.push_back(message);
        }
    }

    fn send(&mut self, message: T, capacity: usize) {
        self.backlog.push_back(message);
        self.flush(capacity);
    }

    fn is_congested(&self) -> bool {
        !self.backlog.is_empty()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct State {
    /// Objects that have not ended.
    live: usize,
    /// SETUPs still to come.
    setups: usize,
    commands: Lane<Command>,
    replies: Lane<Message>,
    requests: VecDeque<Message>,
}

impl State {
    fn is_done(&self) -> bool {
        *self == Self::default()
    }

    /// Every state that one step of one agent leads to.
    fn next(&self, capacity: usize, rule: Rule) -> Vec<Self> {
        type Step = fn(&mut State, usize, Rule);
        const STEPS: [Step; 6] = [
            State::end_object,
            State::conductor_takes_reply,
            State::conductor_takes_request,
            State::agent_takes_command,
            State::agent_hears_setup,
            State::flush,
        ];
        STEPS
            .iter()
            .map(|step| {
                let mut next = self.clone();
                step(&mut next, capacity, rule);
                next
            })
            .filter(|next| next != self)
            .collect()
    }

    fn flush(&mut self, capacity: usize, _rule: Rule) {
        self.commands.flush(capacity);
        self.replies.flush(capacity);
    }

    fn end_object(&mut self, capacity: usize, _rule: Rule) {
        if self.live > 0 {
            self.live -= 1;
            self.commands.send(Command::Remove(1), capacity);
        }
    }

    fn conductor_takes_reply(&mut self, capacity: usize, rule: Rule) {
        if rule.conductor_declines_replies && self.commands.is_congested() {
            return;
        }
        match self.replies.queue.pop_front() {
            Some(Message::Reply(rounds)) if rounds > 0 => {
                self.commands.send(Command::Remove(rounds - 1), capacity);
            }
            Some(Message::Request) => self.commands.send(Command::Answer, capacity),
            Some(Message::Reply(_)) | None => {}
        }
    }

    fn conductor_takes_request(&mut self, capacity: usize, _rule: Rule) {
        if !self.commands.is_congested() && self.requests.pop_front().is_some() {
            self.commands.send(Command::Answer, capacity);
        }
    }

    fn agent_takes_command(&mut self, capacity: usize, rule: Rule) {
        if rule.agent_declines_commands && self.replies.is_congested() {
            return;
        }
        if let Some(Command::Remove(rounds)) = self.commands.queue.pop_front() {
            self.replies.send(Message::Reply(rounds), capacity);
        }
    }

    /// A SETUP that finds no room is dropped.
    fn agent_hears_setup(&mut self, capacity: usize, rule: Rule) {
        if self.setups == 0 {
            return;
        }
        self.setups -= 1;
        if rule.conductor_declines_replies {
            if !self.replies.is_congested() {
                self.replies.send(Message::Request, capacity);
            }
        } else if self.requests.len() < capacity {
            self.requests.push_back(Message::Request);
        }
    }
}

/// All states that can occur, and those among them from which the end cannot be reached.
fn walk(live: usize, setups: usize, capacity: usize, rule: Rule) -> (HashSet<State>, Vec<State>) {
    let start = State {
        live,
        setups,
        ..State::default()
    };
    let mut seen = HashSet::from([start.clone()]);
    let mut before: HashMap<State, Vec<State>> = HashMap::new();
    let mut open = vec![start];
    while let Some(state) = open.pop() {
        for next in state.next(capacity, rule) {
            before.entry(next.clone()).or_default().push(state.clone());
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    let mut finishing: HashSet<State> = seen.iter().filter(|state| state.is_done()).cloned().collect();
    let mut open: Vec<State> = finishing.iter().cloned().collect();
    while let Some(state) = open.pop() {
        for earlier in before.get(&state).into_iter().flatten() {
            if finishing.insert(earlier.clone()) {
                open.push(earlier.clone());
            }
        }
    }
    let stuck = seen.difference(&finishing).cloned().collect();
    (seen, stuck)
}

#[test]
fn no_order_of_steps_blocks_and_no_backlog_outgrows_the_objects() {
    for capacity in 1..=3 {
        for (live, setups) in [(0, 4), (3, 3), (6, 0), (5, 2)] {
            let (seen, stuck) = walk(live, setups, capacity, RULE);
            assert!(seen.iter().any(State::is_done));
            assert_eq!(
                stuck.first(),
                None,
                "live={live} setups={setups} capacity={capacity}"
            );
            for state in seen {
                // One more command than objects: that of the request taken when there was no backlog.
                assert!(state.commands.backlog.len() <= live + 1, "{state:?}");
                assert!(state.replies.backlog.len() <= live, "{state:?}");
            }
        }
    }
}

/// Checks the checker: when both sides decline while they are congested, the walk finds where they block.
#[test]
fn the_walk_finds_the_states_in_which_both_sides_wait() {
    let rule = Rule {
        agent_declines_commands: true,
        conductor_declines_replies: true,
    };
    for (live, setups) in [(6, 0), (5, 2)] {
        let (_, stuck) = walk(live, setups, 1, rule);
        assert!(
            stuck
                .iter()
                .any(|state| state.commands.is_congested() && state.replies.is_congested()),
            "live={live} setups={setups}"
        );
    }
}
