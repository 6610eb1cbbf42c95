//! Reading a properties file from a web server: one plain GET, as far as settings need it.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(10);
const REDIRECTS_MAX: usize = 1;
/// Settings are a few kilobytes; a server that sends more is not sending settings.
const LENGTH_MAX: u64 = 1 << 20;

/// The text at an `http://` location.
pub(crate) fn get(location: &str) -> Result<String, String> {
    let mut location = location.to_owned();
    for _ in 0..=REDIRECTS_MAX {
        match request(&location)? {
            Answer::Text(text) => return Ok(text),
            Answer::MovedTo(target) => location = target,
        }
    }
    Err(format!("more than {REDIRECTS_MAX} redirect"))
}

enum Answer {
    Text(String),
    MovedTo(String),
}

fn request(location: &str) -> Result<Answer, String> {
    let rest = location
        .strip_prefix("http://")
        .ok_or_else(|| format!("not an http:// location: {location}"))?;
    let (authority, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, "/"),
    };
    let answer = exchange(authority, path).map_err(|error| error.to_string())?;
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .ok_or("the server's answer has no end of headers")?;
    let status = head.split(' ').nth(1).unwrap_or_default();
    match status {
        "200" => Ok(Answer::Text(body.to_owned())),
        "301" | "302" | "303" | "307" | "308" => header(head, "location")
            .map(|target| Answer::MovedTo(target.to_owned()))
            .ok_or_else(|| "a redirect without a location".to_owned()),
        _ => Err(format!(
            "the server answered {}",
            head.lines().next().unwrap_or_default()
        )),
    }
}

/// HTTP 1.0 ends an answer by closing the connection, so its length needs no interpretation.
fn exchange(authority: &str, path: &str) -> std::io::Result<String> {
    let with_port = if authority.contains(':') {
        authority.to_owned()
    } else {
        format!("{authority}:80")
    };
    let address = with_port
        .to_socket_addrs()?
        .next()
        .ok_or_else(|| std::io::Error::other(format!("no address for {authority}")))?;
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    write!(
        stream,
        "GET {path} HTTP/1.0\r\nHost: {authority}\r\nAccept: text/plain\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.take(LENGTH_MAX).read_to_string(&mut answer)?;
    Ok(answer)
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines()
        .skip(1)
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;

    use super::*;

    /// Serves the answers in order, then stops; `{here}` stands for the server's own address.
    fn serve(answers: &'static [&'static str]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let here = listener.local_addr().unwrap().to_string();
        let address = here.clone();
        std::thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = BufReader::new(stream.try_clone().unwrap()).lines();
                while request.next().is_some_and(|line| !line.unwrap().is_empty()) {}
                stream
                    .write_all(answer.replace("{here}", &here).as_bytes())
                    .unwrap();
            }
        });
        address
    }

    #[test]
    fn settings_are_read_through_one_redirect() {
        let here = serve(&[
            "HTTP/1.0 302 Found\r\nLocation: http://{here}/there\r\n\r\n",
            "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\naeron.mtu.length=8k\n",
        ]);
        assert_eq!(
            get(&format!("http://{here}/here")).unwrap(),
            "aeron.mtu.length=8k\n"
        );
    }

    #[test]
    fn what_is_not_settings_is_an_error() {
        let here = serve(&["HTTP/1.0 404 Not Found\r\n\r\nno"]);
        assert!(get(&format!("http://{here}")).unwrap_err().contains("404"));
        let here = serve(&[
            "HTTP/1.0 302 Found\r\nLocation: http://{here}/\r\n\r\n",
            "HTTP/1.0 302 Found\r\nLocation: http://{here}/\r\n\r\n",
        ]);
        assert!(get(&format!("http://{here}")).unwrap_err().contains("redirect"));
        assert!(get("ftp://example").is_err());
    }
}
