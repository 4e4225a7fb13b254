//! Graph walk: generates the accesses of breadth-first searches from random roots over an R-MAT graph, to the lists of neighbours, the
//! parents and the queue, in the order of the search.
//!
//! ```text
//! | begins 8 B a vertex | neighbours 4 B an edge end | parent 8 B a vertex | queue 4 B a vertex |
//!   once a vertex         in the order of the search    by the skew of the     in order
//!                                                       degrees
//! ```

use std::collections::VecDeque;

use super::pcg::Pcg32;
use super::rmat::Graph;
use super::{GeneratorSettings, Pattern, Place};

/// Bytes of a vertex: its begin, sixteen ends of edges, its parent, its place in the queue.
const VERTEX: u64 = 8 + 16 * 4 + 8 + 4;

/// Scale of the largest graph, 2^22 vertices: it takes 300 MB while it is built.
const LARGEST: u32 = 22;

pub(super) fn graph_walk(settings: &GeneratorSettings, random: &mut Pcg32) -> Pattern {
    let mut walk = GraphWalk::new(settings, random);
    Box::new(move |_, random| walk.place(random))
}

struct GraphWalk {
    graph: Graph,
    reached: Vec<bool>,
    queue: Vec<u32>,
    head: usize,
    /// Accesses of the current vertex that are still to come.
    pending: VecDeque<Place>,
}

impl GraphWalk {
    /// The largest power of two of vertices that fits the footprint.
    fn new(settings: &GeneratorSettings, random: &mut Pcg32) -> Self {
        let vertices = settings.pages() * super::PAGE / VERTEX;
        let graph = Graph::new(vertices.ilog2().min(LARGEST), random);
        Self {
            reached: vec![false; graph.begins.len() - 1],
            graph,
            queue: Vec::new(),
            head: 0,
            pending: VecDeque::new(),
        }
    }

    fn vertices(&self) -> u64 {
        self.reached.len() as u64
    }

    fn note(&mut self, offset: u64, write: bool) {
        self.pending.push_back(Place { offset, write });
    }

    fn note_begin(&mut self, vertex: u32) {
        self.note(u64::from(vertex) * 8, false);
    }

    fn note_neighbour(&mut self, edge: usize) {
        self.note(self.vertices() * 8 + edge as u64 * 4, false);
    }

    fn note_parent(&mut self, vertex: u32, write: bool) {
        let parents = self.vertices() * 8 + self.graph.neighbours.len() as u64 * 4;
        self.note(parents + u64::from(vertex) * 8, write);
    }

    fn note_queue(&mut self, at: usize, write: bool) {
        let queue = self.vertices() * (VERTEX - 4);
        self.note(queue + at as u64 * 4, write);
    }

    /// Starts a search at an end of a random edge: such a vertex has a neighbour.
    fn begin(&mut self, random: &mut Pcg32) {
        let edge = random.below(self.graph.neighbours.len() as u64) as usize;
        let root = self.graph.neighbours[edge];
        self.reached.fill(false);
        self.queue.clear();
        self.head = 0;
        self.reach(root);
    }

    fn reach(&mut self, vertex: u32) {
        self.reached[vertex as usize] = true;
        self.note_parent(vertex, true);
        self.note_queue(self.queue.len(), true);
        self.queue.push(vertex);
    }

    /// Takes the next vertex from the queue and visits its neighbours.
    fn visit(&mut self, vertex: u32) {
        self.note_queue(self.head, false);
        self.head += 1;
        self.note_begin(vertex);
        let vertex = vertex as usize;
        let (begin, end) = (self.graph.begins[vertex], self.graph.begins[vertex + 1]);
        for edge in begin as usize..end as usize {
            let neighbour = self.graph.neighbours[edge];
            self.note_neighbour(edge);
            self.note_parent(neighbour, false);
            if !self.reached[neighbour as usize] {
                self.reach(neighbour);
            }
        }
    }

    fn place(&mut self, random: &mut Pcg32) -> Place {
        loop {
            if let Some(place) = self.pending.pop_front() {
                return place;
            }
            match self.queue.get(self.head) {
                Some(&vertex) => self.visit(vertex),
                None => self.begin(random),
            }
        }
    }
}
