//! Heralded erasures: with the weights of its shot an answer is right at least twice as often.

#[path = "../../testing/heralds.rs"]
mod shots;

#[test]
fn heralds_halve_the_logical_errors() {
    let (model, graph) = shots::surface();
    let drawn = shots::draw(&model, &graph, 60_000);
    let mut plain = shots::matcher(&graph, &shots::of_data(&model, &graph));
    let mut weighted = shots::matcher(&graph, &[]);
    let ignored = drawn.iter().filter(|shot| shots::without(&mut plain, shot) != shot.flipped).count();
    let heeded = drawn.iter().filter(|shot| shots::with_heralds(&mut weighted, shot) != shot.flipped).count();
    assert!(ignored > 60, "{ignored} logical errors without heralds are too few to tell");
    assert!(2 * heeded <= ignored, "{heeded} logical errors with heralds, {ignored} without");
}
