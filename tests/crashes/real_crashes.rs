//! The real server is killed, its disk fails, its files are damaged: it says so or goes on, and is never wrong.

mod corruption;
mod kill_loop;
mod outside;
mod power_loss;
mod slow_disk;
mod strace;
