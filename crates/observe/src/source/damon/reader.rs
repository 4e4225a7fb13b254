//! `Reader` runs a thread that configures kdamonds (threads of the kernel's DAMON) and reads their regions, so that the daemon's step never
//! waits for them.
//!
//! A reading waits for the end of the kdamond's current report: 100 ms at full speed, 6.4 s at the slowest. So does a
//! change of its settings, and a kdamond that is switched off first ends the pause between two checks. The daemon's
//! step sends commands and takes the replies so far; it waits for neither.
//!
//! ```text
//! step     |---- epoch 7 ----|---- epoch 8 ----|---- epoch 9 ----|
//! commands        read              read              read
//! thread          |====|            |==============|  |===|         a late reply counts in the next epoch
//! ```
//!
//! Only this thread writes the files, because the kernel refuses a second writer (`EBUSY`).

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use isotherm_model::units::Nanos;

use super::admin::{Admin, Monitoring, Region};
use super::pace::Pace;
use crate::clock::MachineClock;
use isotherm_model::port::Clock;

/// A kdamond's number, and a second number that distinguishes it from earlier ones with the same
/// first number.
pub(super) type Kdamond = (usize, u32);

/// Commands to the thread, executed in order.
#[derive(Debug)]
pub(super) enum Order {
    /// Start a kdamond.
    Begin(Kdamond, Monitoring),
    /// Stop the kdamond with this number.
    Stop(usize),
    /// Set the slowdown of all kdamonds against full speed.
    Slow(u32),
    /// Read the regions of all kdamonds.
    Read,
}

/// The replies of the thread.
#[derive(Debug)]
pub(super) enum ReaderReply {
    /// A kdamond's newest report.
    Regions { of: Kdamond, regions: Vec<Region> },
    /// A kdamond could not be started.
    Refused { of: Kdamond, error: io::Error },
    /// A kdamond delivers no more reports, mostly because its process has ended.
    Ended { of: Kdamond, error: io::Error },
    /// Processor time of kdamonds and of the thread since the last such reply.
    Spent(Nanos),
    /// A command to read was executed.
    Done,
}

/// The handle of the thread.
#[derive(Debug)]
pub(super) struct Reader {
    orders: Option<Sender<Order>>,
    told: Receiver<ReaderReply>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// When the kdamonds are read, and how fast they check regions.
    pub(super) pace: Pace,
    /// A command to read was sent and is not yet executed.
    reads: bool,
}

impl Reader {
    /// Passes the kdamonds to a new thread, which may use this many millionths of one processor's time. One of them may run already.
    ///
    /// # Errors
    /// The thread cannot be created.
    pub(super) fn new(
        admin: Admin,
        budget_ppm: u64,
        started: Option<(Kdamond, Monitoring)>,
    ) -> Result<Self, String> {
        let (orders, received) = channel();
        let (tell, told) = channel();
        let ends = Arc::new(AtomicBool::new(false));
        let mut worker = Worker {
            running: vec![None; admin.count()],
            admin,
            tell,
            ends: Arc::clone(&ends),
            busy: Nanos::ZERO,
        };
        if let Some((kdamond, monitoring)) = started {
            worker.runs(kdamond, monitoring);
        }
        let thread = std::thread::Builder::new()
            .name("damon".to_owned())
            .spawn(move || worker.work(&received))
            .map_err(|error| format!("DAMON needs a thread to be read by: {error}"))?;
        Ok(Self {
            orders: Some(orders),
            told,
            ends,
            thread: Some(thread),
            pace: Pace::new(budget_ppm),
            reads: false,
        })
    }

    /// Sends a command.
    pub(super) fn order(&self, order: Order) {
        if let Some(orders) = &self.orders {
            // The thread lives as long as this handle.
            let _ = orders.send(order);
        }
    }

    /// Starts a reading of the kdamonds where one is due.
    pub(super) fn prepare(&mut self) {
        if self.pace.is_due() {
            self.read();
        }
    }

    /// Ends an epoch of this length, and adapts to the total cost.
    pub(super) fn end_epoch(&mut self, cost: Nanos, span: Nanos) {
        self.prepare();
        if let Some(interval) = self.pace.end_epoch(cost, span) {
            self.order(Order::Slow(interval));
        }
    }

    /// Reads all kdamonds once. While a reading is in progress there is no second one.
    pub(super) fn read(&mut self) {
        if !std::mem::replace(&mut self.reads, true) {
            self.order(Order::Read);
        }
    }

    /// The replies since the last call.
    pub(super) fn told(&mut self) -> Vec<ReaderReply> {
        let told: Vec<ReaderReply> = self.told.try_iter().collect();
        if told.iter().any(|told| matches!(told, ReaderReply::Done)) {
            self.reads = false;
        }
        told
    }

    /// The replies of a reading that begins now, after all earlier commands. Waits for it, as the daemon never
    /// does.
    #[cfg(test)]
    pub(super) fn wait(&mut self) -> Vec<ReaderReply> {
        let mut all = Vec::new();
        for _ in 0..2 {
            // The first turn ends the reading in progress.
            all.clear();
            self.read();
            while self.reads {
                let told = self.told.recv().expect("the thread lives");
                self.reads = !matches!(told, ReaderReply::Done);
                all.push(told);
            }
        }
        all
    }
}

/// Waits for the thread, which switches the kdamonds off: it reads at most one report to its end
/// before.
impl Drop for Reader {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // A panic has already printed its message.
            let _ = thread.join();
        }
    }
}

/// A running kdamond.
#[derive(Clone, Debug)]
struct Running {
    turn: u32,
    monitoring: Monitoring,
    /// Its processor time at the last reply.
    cpu: Nanos,
}

/// The state of the thread.
struct Worker {
    admin: Admin,
    running: Vec<Option<Running>>,
    tell: Sender<ReaderReply>,
    ends: Arc<AtomicBool>,
    /// Processor time of this thread at the last reply.
    busy: Nanos,
}

impl Worker {
    fn work(mut self, orders: &Receiver<Order>) {
        while let Ok(order) = orders.recv() {
            if self.ends.load(Ordering::Relaxed) {
                return;
            }
            match order {
                Order::Begin(kdamond, monitoring) => self.begin(kdamond, monitoring),
                Order::Stop(number) => self.stop(number),
                Order::Slow(interval) => self.slow(interval),
                Order::Read => self.read(),
            }
        }
    }

    fn begin(&mut self, of: Kdamond, monitoring: Monitoring) {
        match self.admin.begin(of.0, &monitoring) {
            Ok(()) => self.runs(of, monitoring),
            Err(error) => self.tell(ReaderReply::Refused { of, error }),
        }
    }

    fn runs(&mut self, (number, turn): Kdamond, monitoring: Monitoring) {
        let cpu = self.admin.cpu(number);
        self.running[number] = Some(Running {
            turn,
            monitoring,
            cpu,
        });
        self.admin.note();
    }

    fn stop(&mut self, number: usize) {
        self.spend(number);
        self.running[number] = None;
        self.admin.stop(number);
        self.admin.note();
    }

    /// A kdamond whose intervals cannot be changed while it runs is restarted, and loses its regions.
    fn slow(&mut self, interval: u32) {
        for number in 0..self.running.len() {
            let Some(running) = &mut self.running[number] else {
                continue;
            };
            running.monitoring.interval = interval;
            if self.admin.commit(number, &running.monitoring).is_err() {
                let (turn, monitoring) = (running.turn, running.monitoring.clone());
                self.stop(number);
                self.begin((number, turn), monitoring);
            }
        }
    }

    fn read(&mut self) {
        for number in 0..self.running.len() {
            let Some(running) = &self.running[number] else {
                continue;
            };
            if self.ends.load(Ordering::Relaxed) {
                return;
            }
            let of = (number, running.turn);
            match self.admin.regions(number) {
                Ok(regions) => {
                    self.tell(ReaderReply::Regions { of, regions });
                    self.spend(number);
                }
                Err(error) => {
                    self.stop(number);
                    self.tell(ReaderReply::Ended { of, error });
                }
            }
        }
        self.tell(ReaderReply::Done);
    }

    /// Reports the processor time of a kdamond and of this thread.
    fn spend(&mut self, number: usize) {
        let (cpu, busy) = (self.admin.cpu(number), MachineClock.busy());
        let own = busy.saturating_sub(std::mem::replace(&mut self.busy, busy));
        let running = self.running[number].as_mut();
        let of_kdamond =
            running.map(|running| cpu.saturating_sub(std::mem::replace(&mut running.cpu, cpu)));
        let mut spent = of_kdamond.unwrap_or(Nanos::ZERO);
        spent += own;
        self.tell(ReaderReply::Spent(spent));
    }

    fn tell(&self, told: ReaderReply) {
        // The receiver is closed when the daemon ends.
        let _ = self.tell.send(told);
    }
}
