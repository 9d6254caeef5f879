//! Starts the servers from one thread that never ends.
//!
//! Linux sends the signal for the death of the parent when the *thread* that started the child ends. The thread of one
//! test may start a server that others go on using.

use std::process::{Child, Command};
use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

type Order = (Command, Sender<std::io::Result<Child>>);

pub(crate) fn spawn(command: Command) -> Child {
    static KEEPER: OnceLock<Mutex<Sender<Order>>> = OnceLock::new();
    let keeper = KEEPER.get_or_init(|| {
        let (orders, taken) = mpsc::channel::<Order>();
        let keep = move || {
            for (mut command, answer) in taken {
                let _ = answer.send(command.spawn());
            }
        };
        thread::Builder::new().name("keeper".to_owned()).spawn(keep).expect("a thread");
        Mutex::new(orders)
    });
    let (answer, answered) = mpsc::channel();
    let order = (command, answer);
    keeper.lock().unwrap_or_else(PoisonError::into_inner).send(order).expect("the keeper never ends");
    answered.recv().expect("the keeper never ends").expect("setpriv (util-linux) starts")
}
