//! Few defects of one part: what is connected by short paths is matched by itself.
//!
//! Owned by one matcher. Two defects are *connected* if the path between them is shorter than their
//! paths to the boundary together. Other pairs are never needed: both ends may as well go to the
//! boundary. So the defects fall into clusters that are matched one by one, exactly: one defect
//! with the boundary, two with each other, up to [`CLUSTER_MAX`] by trying all matchings of their
//! subsets. Larger clusters are left to the search. Bounded by [`DEFECTS_MAX`] defects.
//!
//! Where a few edges are lighter in this shot, [`shortcuts`](crate::shortcuts) correct the distances.

use crate::graph::{Graph, NONE};
use crate::search::Failure;
use crate::shortcuts::{DEFECTS_MAX, FAR, NearPair, Shortcuts, weight_of};
use crate::table::{BEYOND, Tables};

/// Most defects of a cluster that is matched here.
const CLUSTER_MAX: usize = 6;

/// The memory for it.
#[derive(Debug)]
pub(crate) struct Near {
    /// Distances between defects, the lower first.
    distances: [[u32; DEFECTS_MAX]; DEFECTS_MAX],
    /// For each defect those connected with it, a bit each.
    connected: [u32; DEFECTS_MAX],
    /// For each defect its distance to the boundary, [`FAR`] if there is none.
    alone: [u64; DEFECTS_MAX],
    /// For each defect the higher ones to which, and its own bit if its way to the boundary, takes an
    /// edge that is lighter in this shot.
    shortened: [u32; DEFECTS_MAX],
    /// For each set of a cluster's defects: the least weight of its matchings.
    least: [u64; 1 << CLUSTER_MAX],
    /// And the partner of the set's last defect; its own number for the boundary.
    partner: [u8; 1 << CLUSTER_MAX],
}

impl Near {
    pub(crate) const fn new() -> Self {
        Self {
            distances: [[0; DEFECTS_MAX]; DEFECTS_MAX],
            connected: [0; DEFECTS_MAX],
            alone: [0; DEFECTS_MAX],
            shortened: [0; DEFECTS_MAX],
            least: [0; 1 << CLUSTER_MAX],
            partner: [0; 1 << CLUSTER_MAX],
        }
    }

    /// Matches `defects`, ascending nodes of one part with tables, at most [`DEFECTS_MAX`]. Hands
    /// each pair to `take`, and defects of large clusters to `leave`; returns the weight.
    ///
    /// # Errors
    ///
    /// [`Failure`], with a node; `take` and `leave` may have been called.
    pub(crate) fn matched(
        &mut self,
        graph: &Graph,
        tables: &Tables,
        defects: &[u32],
        mut take: impl FnMut(NearPair),
        leave: impl FnMut(u32),
    ) -> Result<i64, Failure> {
        match *defects {
            [] => return Ok(0),
            [defect] => return to_boundary(tables, defect, &mut take),
            [a, b] => return two(graph, tables, a, b, &mut take),
            _ => {}
        }
        self.measure(graph, tables, defects);
        self.match_clusters(defects, take, leave)
    }

    /// As [`Self::matched`], for the defects of `shortcuts` by the distances that they have measured.
    pub(crate) fn matched_shortened(
        &mut self,
        shortcuts: &Shortcuts,
        mut take: impl FnMut(NearPair),
        leave: impl FnMut(u32),
    ) -> Result<i64, Failure> {
        let defects = shortcuts.defects();
        if let [a, b] = *defects {
            let ((distance, is_shortened), alone) = (shortcuts.between(0, 1), shortcuts.to_boundary(0).0);
            if distance < alone + shortcuts.to_boundary(1).0 {
                take(NearPair { a, b, is_shortened });
                return Ok(distance as i64);
            }
        }
        if let [_] | [_, _] = defects {
            let mut weight = 0;
            for (at, &a) in defects.iter().enumerate() {
                let (alone, is_shortened) = shortcuts.to_boundary(at);
                if alone >= FAR {
                    return Err(Failure::Unmatched(a));
                }
                take(NearPair { a, b: NONE, is_shortened });
                weight += alone as i64;
            }
            return Ok(weight);
        }
        for a in 0..defects.len() {
            let (alone, is_shortened) = shortcuts.to_boundary(a);
            (self.alone[a], self.shortened[a]) = (alone, u32::from(is_shortened) << a);
            for b in a + 1..defects.len() {
                let (distance, is_shortened) = shortcuts.between(a, b);
                self.distances[a][b] = distance as u32;
                self.shortened[a] |= u32::from(is_shortened) << b;
            }
        }
        self.match_clusters(defects, take, leave)
    }

    /// Notes the distances in the table.
    fn measure(&mut self, graph: &Graph, tables: &Tables, defects: &[u32]) {
        self.shortened[..defects.len()].fill(0);
        for (a, &from) in defects.iter().enumerate() {
            let row = tables.distances_behind(graph, from);
            self.alone[a] = weight_of(tables.to_boundary(from));
            for (b, &to) in defects.iter().enumerate().skip(a + 1) {
                self.distances[a][b] = row[(to - from - 1) as usize];
            }
        }
    }

    /// Notes what the distances connect, and matches each cluster.
    fn match_clusters(
        &mut self,
        defects: &[u32],
        mut take: impl FnMut(NearPair),
        mut leave: impl FnMut(u32),
    ) -> Result<i64, Failure> {
        self.connect(defects.len());
        let mut weight = 0;
        let mut left = (1u32 << defects.len()) - 1;
        while left != 0 {
            let first = left.trailing_zeros() as usize;
            let cluster = self.cluster(first);
            left &= !cluster;
            weight += match cluster.count_ones() as usize {
                1 => {
                    if self.alone[first] >= FAR {
                        return Err(Failure::Unmatched(defects[first]));
                    }
                    take(self.pair(defects, first, first));
                    self.alone[first] as i64
                }
                2 => {
                    let last = 31 - cluster.leading_zeros() as usize;
                    take(self.pair(defects, first, last));
                    i64::from(self.distances[first][last])
                }
                3..=CLUSTER_MAX => self.try_all(defects, cluster, &mut take)?,
                _ => {
                    members(cluster).for_each(|at| leave(defects[at]));
                    0
                }
            };
        }
        Ok(weight)
    }

    /// Defects `a` and `b`, the lower first; `a` and the boundary if they are the same.
    fn pair(&self, defects: &[u32], a: usize, b: usize) -> NearPair {
        let is_shortened = self.shortened[a] >> b & 1 == 1;
        NearPair { a: defects[a], b: if a == b { NONE } else { defects[b] }, is_shortened }
    }

    fn connect(&mut self, count: usize) {
        self.connected[..count].fill(0);
        for a in 0..count {
            for b in a + 1..count {
                let is_shorter = u64::from(self.distances[a][b]) < self.alone[a] + self.alone[b];
                self.connected[a] |= u32::from(is_shorter) << b;
                self.connected[b] |= u32::from(is_shorter) << a;
            }
        }
    }

    /// All defects connected with `first`, directly or not.
    fn cluster(&self, first: usize) -> u32 {
        let (mut cluster, mut fresh) = (1u32 << first, 1u32 << first);
        while fresh != 0 {
            let reached = members(fresh).fold(0, |reached, at| reached | self.connected[at]);
            fresh = reached & !cluster;
            cluster |= reached;
        }
        cluster
    }

    /// Matches a cluster by the least matchings of all its subsets.
    fn try_all(&mut self, defects: &[u32], cluster: u32, take: &mut impl FnMut(NearPair)) -> Result<i64, Failure> {
        let mut at = [0; CLUSTER_MAX];
        let mut count = 0;
        for member in members(cluster) {
            at[count] = member;
            count += 1;
        }
        self.least[0] = 0;
        for last in 0..count {
            let alone = self.alone[at[last]];
            let own = 1 << last;
            for others in 0..own {
                let (mut least, mut partner) = (self.least[others] + alone, last);
                let mut rest = others;
                while rest != 0 {
                    let other = rest.trailing_zeros() as usize;
                    rest &= rest - 1;
                    let weight = self.least[others & !(1 << other)] + weight_of(self.distances[at[other]][at[last]]);
                    if weight < least {
                        (least, partner) = (weight, other);
                    }
                }
                (self.least[own | others], self.partner[own | others]) = (least.min(FAR), partner as u8);
            }
        }
        let mut left = (1usize << count) - 1;
        let weight = self.least[left];
        if weight >= FAR {
            return Err(Failure::Unmatched(defects[at[0]]));
        }
        while left != 0 {
            let last = left.ilog2() as usize;
            let partner = usize::from(self.partner[left]);
            left &= !(1 << last | 1 << partner);
            take(self.pair(defects, at[partner], at[last]));
        }
        Ok(weight as i64)
    }
}

/// The bits of a set.
fn members(mut set: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let at = set.trailing_zeros() as usize;
        (set != 0).then(|| {
            set &= set - 1;
            at
        })
    })
}

const fn pair(a: u32, b: u32) -> NearPair {
    NearPair { a, b, is_shortened: false }
}

/// Matches a lone defect.
fn to_boundary(tables: &Tables, defect: u32, take: &mut impl FnMut(NearPair)) -> Result<i64, Failure> {
    match tables.to_boundary(defect) {
        BEYOND => Err(Failure::Unmatched(defect)),
        distance => {
            take(pair(defect, NONE));
            Ok(i64::from(distance))
        }
    }
}

/// Matches two defects.
fn two(graph: &Graph, tables: &Tables, a: u32, b: u32, take: &mut impl FnMut(NearPair)) -> Result<i64, Failure> {
    let distance = tables.distances_behind(graph, a)[(b - a - 1) as usize];
    if u64::from(distance) < u64::from(tables.to_boundary(a)) + u64::from(tables.to_boundary(b)) {
        take(pair(a, b));
        return Ok(i64::from(distance));
    }
    Ok(to_boundary(tables, a, take)? + to_boundary(tables, b, take)?)
}
