//! A thread that configures kdamonds and reads their regions, so that the daemon's step never waits for them.
//!
//! A reading waits for the end of the kdamond's current report: 100 ms at full speed, 6.4 s at the slowest. So does a
//! change of its settings, and a kdamond that is switched off ends the pause between two looks first. The daemon's
//! step gives orders and takes what was told meanwhile; it waits for neither.
//!
//! ```text
//! step     |---- epoch 7 ----|---- epoch 8 ----|---- epoch 9 ----|
//! orders          read              read              read
//! thread          |====|            |==============|  |===|         what is late counts in the next epoch
//! ```
//!
//! All files are written by this one thread, because the kernel refuses a second writer (`EBUSY`).

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use isotherm_model::units::Nanos;

use super::admin::{Admin, Monitoring, Region};
use crate::clock::MachineClock;
use isotherm_model::port::Clock;

/// A kdamond's number, and a second one that tells it from those which had the first one before.
pub(super) type Kdamond = (usize, u32);

/// Commands to the thread, in the order in which it carries them out.
#[derive(Debug)]
enum Order {
    /// Start a kdamond.
    Begin(Kdamond, Monitoring),
    /// Stop the kdamond with this number.
    Stop(usize),
    /// Have all kdamonds look so many times slower than at full speed.
    Slow(u32),
    /// Read what all kdamonds tell.
    Read,
}

/// What the thread tells.
#[derive(Debug)]
pub(super) enum ReaderCommand {
    /// A kdamond's newest report.
    Regions { of: Kdamond, regions: Vec<Region> },
    /// A kdamond could not be started.
    Refused { of: Kdamond, error: io::Error },
    /// A kdamond tells no more, mostly because its process has ended.
    Ended { of: Kdamond, error: io::Error },
    /// Processor time of kdamonds and of the thread since this was told last.
    Spent(Nanos),
    /// An order to read was carried out.
    Done,
}

/// The thread, from outside.
#[derive(Debug)]
pub(super) struct Reader {
    orders: Option<Sender<Order>>,
    told: Receiver<ReaderCommand>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// An order to read was given and not carried out yet.
    reads: bool,
}

impl Reader {
    /// Gives the kdamonds to a thread of their own.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub(super) fn new(admin: Admin) -> Result<Self, String> {
        Self::with(admin, None)
    }

    fn with(admin: Admin, started: Option<(Kdamond, Monitoring)>) -> Result<Self, String> {
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
            reads: false,
        })
    }

    /// As [`Self::new`], with a kdamond that runs already.
    ///
    /// # Errors
    /// It cannot be started, or there is no thread to be had.
    pub(super) fn started(
        admin: Admin,
        kdamond: Kdamond,
        monitoring: Monitoring,
    ) -> Result<Self, String> {
        admin
            .begin(kdamond.0, &monitoring)
            .map_err(|error| error.to_string())?;
        Self::with(admin, Some((kdamond, monitoring)))
    }

    /// Starts a kdamond.
    pub(super) fn begin(&self, kdamond: Kdamond, monitoring: Monitoring) {
        self.order(Order::Begin(kdamond, monitoring));
    }

    /// Stops a kdamond.
    pub(super) fn stop(&self, number: usize) {
        self.order(Order::Stop(number));
    }

    /// Has all kdamonds look so many times slower than at full speed.
    pub(super) fn slow(&self, interval: u32) {
        self.order(Order::Slow(interval));
    }

    /// Has all kdamonds read once. While a reading is under way there is no second one.
    pub(super) fn read(&mut self) {
        if !std::mem::replace(&mut self.reads, true) {
            self.order(Order::Read);
        }
    }

    /// What was told since the last call.
    pub(super) fn told(&mut self) -> Vec<ReaderCommand> {
        let told: Vec<ReaderCommand> = self.told.try_iter().collect();
        if told.iter().any(|told| matches!(told, ReaderCommand::Done)) {
            self.reads = false;
        }
        told
    }

    fn order(&self, order: Order) {
        if let Some(orders) = &self.orders {
            // The thread lives as long as this does.
            let _ = orders.send(order);
        }
    }

    /// What a reading tells that begins now, when all orders of before are carried out. Waits for it, as the daemon
    /// never does.
    #[cfg(test)]
    pub(super) fn wait(&mut self) -> Vec<ReaderCommand> {
        let mut all = Vec::new();
        for _ in 0..2 {
            // The first turn ends what is under way already.
            all.clear();
            self.read();
            while self.reads {
                let told = self.told.recv().expect("the thread lives");
                self.reads = !matches!(told, ReaderCommand::Done);
                all.push(told);
            }
        }
        all
    }
}

/// Waits for the thread, which switches the kdamonds off: at most one report is read to its end before.
impl Drop for Reader {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // A panic has told of itself.
            let _ = thread.join();
        }
    }
}

/// A kdamond that runs.
#[derive(Clone, Debug)]
struct Running {
    turn: u32,
    monitoring: Monitoring,
    /// Its processor time when it was last told.
    cpu: Nanos,
}

/// The thread's own.
struct Worker {
    admin: Admin,
    running: Vec<Option<Running>>,
    tell: Sender<ReaderCommand>,
    ends: Arc<AtomicBool>,
    /// Processor time of this thread when it was last told.
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
            Err(error) => self.tell(ReaderCommand::Refused { of, error }),
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

    /// A kdamond whose intervals cannot be changed while it runs is started anew, and loses its regions.
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
                    self.tell(ReaderCommand::Regions { of, regions });
                    self.spend(number);
                }
                Err(error) => {
                    self.stop(number);
                    self.tell(ReaderCommand::Ended { of, error });
                }
            }
        }
        self.tell(ReaderCommand::Done);
    }

    /// Tells the processor time of a kdamond and of this thread.
    fn spend(&mut self, number: usize) {
        let (cpu, busy) = (self.admin.cpu(number), MachineClock.busy());
        let own = busy.saturating_sub(std::mem::replace(&mut self.busy, busy));
        let running = self.running[number].as_mut();
        let of_kdamond =
            running.map(|running| cpu.saturating_sub(std::mem::replace(&mut running.cpu, cpu)));
        let mut spent = of_kdamond.unwrap_or(Nanos::ZERO);
        spent += own;
        self.tell(ReaderCommand::Spent(spent));
    }

    fn tell(&self, told: ReaderCommand) {
        // The receiver is gone when the daemon ends.
        let _ = self.tell.send(told);
    }
}
