//! The real server is killed, its disk fails, its files are damaged: it reports that or continues, and never returns
//! anything wrong.

mod corruption;
mod kill_loop;
mod outside;
mod power_loss;
mod slow_disk;
mod strace;
