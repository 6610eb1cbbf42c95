//! Requests and answers in the plot: servers that come and go, requesters that ask, leave and die.

use crate::common::SECOND;
use crate::people::Stamp;
use crate::plot::{Chaos, forgiven};
use crate::requesters::Requester;
use crate::servers::Server;
use crate::stage::SERVICES;

impl Chaos {
    /// A requester comes.
    pub(crate) fn ask(&mut self) {
        let service = self.random.usize(0..SERVICES);
        let chosen = self.chosen_node();
        let server = self.shape.server_of(service);
        let node = if self.shape.is_local_service(service) {
            server
        } else {
            chosen
        };
        let Some(client) = self.clients[node].clone() else {
            return;
        };
        let route = self.shape.route(service, &self.nodes);
        let id = self.next_id();
        let is_shared = self.random.bool();
        let added = Requester::new(node, &client, service, &route, id, is_shared);
        self.requesters.extend(forgiven(added));
    }

    /// A service has a server again, with a client of its own, unless its node is down.
    pub(crate) fn serve(&mut self, service: usize) {
        let node = self.shape.server_of(service);
        let is_served = self.servers.iter().any(|server| server.service == service);
        if is_served || !self.nodes[node].is_up() {
            return;
        }
        let client = self.new_client(node);
        let route = self.shape.route(service, &self.nodes);
        let patience_ns = self.shape.time(10 * SECOND);
        let id = self.next_id();
        let added = Server::new(node, client, service, route, patience_ns, id);
        self.servers.extend(forgiven(added));
    }

    /// A server ends, or is killed, and may come back before the driver notices.
    pub(crate) fn end_server(&mut self) {
        let server = self.servers.swap_remove(self.random.usize(0..self.servers.len()));
        if self.random.bool() {
            server.leave_holes(&mut self.random);
            self.nodes[server.node].crash_client(&server.client).unwrap();
        }
        let service = server.service;
        drop(server);
        if self.random.bool() {
            self.serve(service);
        }
    }

    /// Servers answer, and requesters read.
    pub(crate) fn exchange(&mut self) {
        let now_ns = self.world.now_ns();
        for server in &mut self.servers {
            if !self.nodes[server.node].is_paused() {
                server.turn(&mut self.random, now_ns);
            }
        }
        for requester in &mut self.requesters {
            let is_awake = now_ns >= requester.asleep_until_ns && !self.nodes[requester.node].is_paused();
            if is_awake && self.random.u8(0..4) > 0 {
                requester.poll();
            }
        }
    }

    /// Each service has its server, which has a session for each requester of it and for no other, and each requester
    /// reads the responses of its session, and nothing else.
    pub(crate) fn is_matched(&self) -> bool {
        self.servers.len() == SERVICES && self.servers.iter().all(|server| self.is_matched_by(server))
    }

    fn is_matched_by(&self, server: &Server) -> bool {
        let sessions = server.sessions();
        let requesters = self.requesters.iter().filter(|one| one.service == server.service);
        let is_answered = |requester: &Requester| {
            let asked = requester.requests.handle.session_id();
            let mut sessions = sessions.iter();
            let answers = sessions
                .find(|session| session.0 == asked)
                .and_then(|session| session.1);
            answers.is_some_and(|answers| requester.sessions() == [answers])
        };
        requesters.clone().count() == sessions.len() && requesters.clone().all(is_answered)
    }

    /// True when the server of each requester has sent answers to all it asked.
    pub(crate) fn is_answered(&self) -> bool {
        let has_feedback = |requester: &Requester, asked: Stamp| {
            let session_id = requester.requests.handle.session_id();
            let mut servers = self.servers.iter();
            servers
                .any(|server| server.service == requester.service && server.has_feedback(session_id, asked))
        };
        let mut requesters = self.requesters.iter();
        requesters.all(|requester| has_feedback(requester, requester.requests.published()))
    }
}
