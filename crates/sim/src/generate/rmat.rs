//! Generates R-MAT graphs (Chakrabarti, Zhan, Faloutsos, SDM 2004) for the graph walk: each edge falls into a quadrant of the adjacency
//! matrix with unequal probabilities, recursively, which gives few vertices many edges and many vertices few. The probabilities are those
//! of Graph500: 57, 19, 19 and 5 in a hundred.

use super::pcg::Pcg32;

/// Neighbours of every vertex, one list after the other.
pub(super) struct Graph {
    /// Start of each vertex's list, and the end of the last.
    pub(super) begins: Vec<u32>,
    pub(super) neighbours: Vec<u32>,
}

impl Graph {
    /// 2^`scale` vertices and eight times as many edges, each in the lists of both its ends.
    pub(super) fn new(scale: u32, random: &mut Pcg32) -> Self {
        let vertices = 1_usize << scale;
        let edges: Vec<(u32, u32)> = (0..vertices * 8).map(|_| edge(scale, random)).collect();
        let mut begins = vec![0; vertices + 1];
        for &(a, b) in &edges {
            begins[a as usize + 1] += 1;
            begins[b as usize + 1] += 1;
        }
        for vertex in 0..vertices {
            begins[vertex + 1] += begins[vertex];
        }
        let mut next = begins.clone();
        let mut neighbours = vec![0; edges.len() * 2];
        for &(a, b) in &edges {
            for (from, to) in [(a, b), (b, a)] {
                let at = &mut next[from as usize];
                neighbours[*at as usize] = to;
                *at += 1;
            }
        }
        Self { begins, neighbours }
    }
}

fn edge(scale: u32, random: &mut Pcg32) -> (u32, u32) {
    let (mut row, mut column) = (0, 0);
    for _ in 0..scale {
        let (down, right) = match random.below(100) {
            0..57 => (0, 0),
            57..76 => (0, 1),
            76..95 => (1, 0),
            _ => (1, 1),
        };
        row = row << 1 | down;
        column = column << 1 | right;
    }
    (row, column)
}

#[cfg(test)]
mod tests {
    use super::Graph;
    use crate::generate::pcg::Pcg32;

    #[test]
    fn every_edge_is_in_both_lists_and_few_vertices_hold_most_of_them() {
        let graph = Graph::new(10, &mut Pcg32::new(1));
        let list = |vertex: usize| {
            let (begin, end) = (graph.begins[vertex], graph.begins[vertex + 1]);
            &graph.neighbours[begin as usize..end as usize]
        };
        assert_eq!(graph.neighbours.len(), 1024 * 16);
        let mut there: Vec<(u32, u32)> = Vec::new();
        for vertex in 0..1024 {
            there.extend(list(vertex).iter().map(|&to| (vertex as u32, to)));
        }
        let mut back: Vec<(u32, u32)> = there.iter().map(|&(a, b)| (b, a)).collect();
        there.sort_unstable();
        back.sort_unstable();
        assert_eq!(there, back);
        let mut degrees: Vec<usize> = (0..1024).map(|vertex| list(vertex).len()).collect();
        degrees.sort_unstable();
        let top: usize = degrees[1024 - 102..].iter().sum();
        assert!(top * 2 > graph.neighbours.len(), "a tenth holds {top}");
    }
}
