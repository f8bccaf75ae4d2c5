//! `fairlift ctl`: ask a running server.

use std::io::{BufRead, BufReader, Write};
use std::time::Duration;

use fairlift_server::net::Address;
use serde_json::{Value, json};

use super::args::{CtlAction, CtlArguments, ShareArguments};
use crate::error::Failure;
use crate::output;

/// How long the server may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Ask, and print the answer.
pub fn ctl(arguments: &CtlArguments) -> Result<(), Failure> {
    let place = &arguments.address;
    let address = Address::parse(place).map_err(|message| Failure::new(message).at("ADDRESS"))?;
    let failed = |error: std::io::Error| {
        Failure::new(format!("cannot ask the server: {}", output::reason(&error))).at(place)
    };
    let mut stream = address.connect().map_err(failed)?;
    stream.set_timeout(Some(TIMEOUT)).map_err(failed)?;
    stream.write_all(format!("{}\n", question(&arguments.action)).as_bytes()).map_err(failed)?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).map_err(failed)?;
    let answer: Value = serde_json::from_str(&line)
        .map_err(|_| Failure::new("what answers there is no fairlift server").at(place))?;
    match answer.get("error").and_then(Value::as_str) {
        Some(error) => Err(Failure::new(error).at(place)),
        None if answer.get("ok").is_some() => Ok(()),
        None => output::print(&format!("{answer:#}\n")),
    }
}

/// The action as the server reads it.
fn question(action: &CtlAction) -> Value {
    match action {
        CtlAction::Show => json!({ "do": "show" }),
        CtlAction::Set { export, share } => shared(json!({ "do": "set", "export": export }), share),
        CtlAction::Elevator { device, elevator } => {
            json!({ "do": "elevator", "device": device, "elevator": elevator })
        }
        CtlAction::Add { device, name, description, offset, size, read_only, per_connection, share } => {
            let add = json!({
                "do": "add", "device": device, "name": name, "description": description, "offset": offset,
                "size": size, "read_only": read_only, "per_connection": per_connection,
            });
            shared(add, share)
        }
        CtlAction::Remove { export } => json!({ "do": "remove", "export": export }),
        CtlAction::Resize { export, size } => json!({ "do": "resize", "export": export, "size": size }),
        CtlAction::Trace { device, file, .. } => {
            // The server may run in another folder.
            let file = file.as_ref().map(|path| std::path::absolute(path).unwrap_or_else(|_| path.clone()));
            json!({ "do": "trace", "device": device, "file": file })
        }
        CtlAction::Drain => json!({ "do": "drain" }),
    }
}

fn shared(mut question: Value, share: &ShareArguments) -> Value {
    question["weight"] = json!(share.weight);
    question["class"] = json!(share.class);
    question["max"] = json!(share.max);
    question["burst"] = json!(share.burst);
    question["reserve"] = json!(share.reserve);
    question["goal"] = json!(share.goal);
    question
}
