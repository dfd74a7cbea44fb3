//! Which parts of sums and products to compute once.
//!
//! A sum or product is a bag of operands. Pairs of operands that occur together in several bags
//! become operands themselves, the most frequent first, until no pair occurs twice.

use std::collections::HashMap;
use std::hash::Hash;

/// Pairs are counted among the first operands of a bag only, so that a long sum costs no more than
/// this squared.
const MAX_COUNTED: usize = 24;
/// Each pass doubles the size of what is shared at most, so a few are enough.
const MAX_PASSES: usize = 8;

/// An operand: one of the caller's, or two operands combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<K> {
    Single(K),
    Pair(usize, usize),
}

/// Operands, and each bag as indices into them.
pub struct Shared<K> {
    pub items: Vec<Item<K>>,
    pub bags: Vec<Vec<usize>>,
}

/// Group the operands of the bags.
pub fn share<K: Copy + Ord + Hash>(bags: &[Vec<K>]) -> Shared<K> {
    let mut items = Vec::new();
    let mut index: HashMap<K, usize> = HashMap::new();
    let mut intern = |key: &K| {
        *index.entry(*key).or_insert_with(|| {
            items.push(Item::Single(*key));
            items.len() - 1
        })
    };
    let mut bags: Vec<Vec<usize>> =
        bags.iter().map(|bag| bag.iter().map(&mut intern).collect()).collect();
    for _ in 0..MAX_PASSES {
        if !pair_up(&mut items, &mut bags) {
            break;
        }
    }
    Shared { items, bags }
}

/// One pass; false if no pair occurs twice.
fn pair_up<K>(items: &mut Vec<Item<K>>, bags: &mut [Vec<usize>]) -> bool {
    let mut places: HashMap<(usize, usize), Vec<usize>> = HashMap::new();
    for (place, bag) in bags.iter().enumerate() {
        let counted = &bag[..bag.len().min(MAX_COUNTED)];
        for (k, a) in counted.iter().enumerate() {
            for b in &counted[k + 1..] {
                places.entry((*a.min(b), *a.max(b))).or_default().push(place);
            }
        }
    }
    let mut frequent: Vec<_> = places.into_iter().filter(|(_, bags)| bags.len() > 1).collect();
    frequent.sort_by(|(a, in_a), (b, in_b)| in_b.len().cmp(&in_a.len()).then(a.cmp(b)));
    let mut changed = false;
    for ((a, b), candidates) in frequent {
        let holders: Vec<usize> = candidates
            .into_iter()
            .filter(|place| a != b && bags[*place].contains(&a) && bags[*place].contains(&b))
            .collect();
        if holders.len() < 2 {
            continue;
        }
        let pair = items.len();
        items.push(Item::Pair(a, b));
        for place in holders {
            bags[place].retain(|item| *item != a && *item != b);
            bags[place].push(pair);
        }
        changed = true;
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_in_two_bags_becomes_one_operand() {
        let shared = share(&[vec![1, 2, 3], vec![3, 1], vec![2, 4]]);
        let pair = shared.items.len() - 1;
        assert_eq!(shared.items[pair], Item::Pair(0, 2));
        assert_eq!(shared.bags, [vec![1, pair], vec![pair], vec![1, 3]]);
    }

    #[test]
    fn longer_parts_are_found_pair_by_pair() {
        let shared = share(&[vec![1, 2, 3, 4], vec![1, 2, 3, 5]]);
        assert!(shared.bags.iter().all(|bag| bag.len() == 2), "{:?}", shared.bags);
    }
}
