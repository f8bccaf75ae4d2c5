//! The index-based list, alone and against vectors.

use fairlift_core::RequestId;
use fairlift_core::collections::{Id, List, ListLinks};

fn id(index: usize) -> RequestId {
    RequestId::from_index(index)
}

fn ids(indices: &[usize]) -> Vec<RequestId> {
    indices.iter().map(|i| id(*i)).collect()
}

fn filled(links: &mut ListLinks<RequestId>, indices: &[usize]) -> List<RequestId> {
    let mut list = List::new();
    for i in indices {
        list.push_back(links, id(*i));
    }
    list
}

/// Forwards, backwards, ends and length all say `expected`.
#[track_caller]
fn check(list: &List<RequestId>, links: &ListLinks<RequestId>, expected: &[RequestId]) {
    assert_eq!(list.iter(links).collect::<Vec<_>>(), expected, "forwards");
    let mut backwards = Vec::new();
    let mut at = list.back();
    while let Some(id) = at {
        backwards.push(id);
        at = list.prev(links, id);
    }
    backwards.reverse();
    assert_eq!(backwards, expected, "backwards");
    assert_eq!((list.front(), list.back()), (expected.first().copied(), expected.last().copied()));
    assert_eq!((list.len(), list.is_empty()), (expected.len(), expected.is_empty()));
    for (i, id) in expected.iter().enumerate() {
        assert_eq!(list.next(links, *id), expected.get(i + 1).copied());
    }
}

#[test]
fn an_empty_list_has_nothing() {
    let mut links = ListLinks::new(4);
    let mut list = List::<RequestId>::default();
    check(&list, &links, &[]);
    assert_eq!(list.pop_front(&mut links), None);
}

#[test]
fn grows_at_both_ends() {
    let mut links = ListLinks::new(4);
    let mut list = List::new();
    list.push_back(&mut links, id(2));
    list.push_front(&mut links, id(1));
    list.push_back(&mut links, id(3));
    list.push_front(&mut links, id(0));
    check(&list, &links, &ids(&[0, 1, 2, 3]));
}

#[test]
fn takes_in_beside_an_element_also_at_the_ends() {
    let mut links = ListLinks::new(8);
    let mut list = filled(&mut links, &[0, 1]);
    list.insert_before(&mut links, id(0), id(2));
    list.insert_after(&mut links, id(1), id(3));
    list.insert_before(&mut links, id(1), id(4));
    list.insert_after(&mut links, id(0), id(5));
    check(&list, &links, &ids(&[2, 0, 5, 4, 1, 3]));
}

#[test]
fn lets_go_of_the_first_a_middle_the_last_and_the_only_one() {
    let mut links = ListLinks::new(4);
    let mut list = filled(&mut links, &[0, 1, 2, 3]);
    for (gone, left) in [(1, &[0, 2, 3][..]), (0, &[2, 3]), (3, &[2]), (2, &[])] {
        list.remove(&mut links, id(gone));
        check(&list, &links, &ids(left));
        assert_eq!((list.next(&links, id(gone)), list.prev(&links, id(gone))), (None, None));
    }
}

#[test]
fn pops_in_order_and_takes_the_popped_again() {
    let mut links = ListLinks::new(4);
    let mut list = filled(&mut links, &[3, 1]);
    assert_eq!(list.pop_front(&mut links), Some(id(3)));
    list.push_back(&mut links, id(3));
    check(&list, &links, &ids(&[1, 3]));
}

/// Three lists over one set of links, elements moving about, against three vectors.
#[test]
fn agrees_with_vectors() {
    const N: usize = 61;
    let mut links = ListLinks::new(N);
    let mut lists = [List::<RequestId>::new(); 3];
    let mut models: [Vec<RequestId>; 3] = Default::default();
    let mut state = 0x853c_49e6_748f_ea9b_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for _ in 0..50_000 {
        let element = id(random(N));
        if let Some(on) = models.iter().position(|m| m.contains(&element)) {
            models[on].retain(|e| *e != element);
            lists[on].remove(&mut links, element);
            check(&lists[on], &links, &models[on]);
        }
        let to = random(3);
        let (list, model) = (&mut lists[to], &mut models[to]);
        match random(6) {
            0 => {
                list.push_front(&mut links, element);
                model.insert(0, element);
            }
            1 => {
                list.push_back(&mut links, element);
                model.push(element);
            }
            2 if !model.is_empty() => {
                let at = random(model.len());
                list.insert_after(&mut links, model[at], element);
                model.insert(at + 1, element);
            }
            3 if !model.is_empty() => {
                let at = random(model.len());
                list.insert_before(&mut links, model[at], element);
                model.insert(at, element);
            }
            4 => {
                let popped = if model.is_empty() { None } else { Some(model.remove(0)) };
                assert_eq!(list.pop_front(&mut links), popped);
            }
            _ => {}
        }
        check(list, &links, model);
    }
}
