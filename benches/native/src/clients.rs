//! Clients of the drivers that take part.

use std::error::Error;

use headrace_client::{Client, ClientConfig};

/// One client for each driver's directory.
#[derive(Default)]
pub(crate) struct Clients(Vec<(String, Client)>);

impl Clients {
    pub(crate) fn of(&mut self, dir: &str) -> Result<&Client, Box<dyn Error>> {
        let index = match self.0.iter().position(|(known, _)| known == dir) {
            Some(index) => index,
            None => {
                self.0.push((dir.to_owned(), Self::connected(dir)?));
                self.0.len() - 1
            }
        };
        Ok(&self.0[index].1)
    }

    /// A client of a driver, for the caller alone.
    pub(crate) fn connected(dir: &str) -> Result<Client, Box<dyn Error>> {
        Ok(Client::connect(ClientConfig {
            directory: dir.into(),
            ..ClientConfig::default()
        })?)
    }
}
