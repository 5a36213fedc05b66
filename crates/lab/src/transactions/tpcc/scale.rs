//! The sizes of the tables, the draws of clients, and the first filling (clauses 1.2, 2.1.6,
//! 4.3.3).
//! ```text
//! warehouse   10 districts, each with customers and as many orders, 3 of 10 of them new
//!             a stock of every item
//! ```
//! The standard has 100,000 items and 3,000 customers per district. With fewer items, there are
//! proportionally fewer customers.
//! Invariant: a scale and a seed give every store the same rows.

use crate::compare::{Space, TransactionalStore};
use crate::error::Result;
use crate::keys::rng::{Rng, scramble};
use crate::transactions::tpcc::schema::{
    CUSTOMER, CUSTOMER_BY_NAME, DISTRICT, DistrictId, HISTORY, ITEM, NEW_ORDER, ORDER,
    ORDER_BY_CUSTOMER, ORDER_LINE, STOCK, WAREHOUSE, item_key, last_name, stock_key, warehouse_key,
};

pub(crate) const DISTRICTS: u8 = 10;
/// The fewest items with which a district has new orders at first.
const ITEMS_MIN: u64 = 1000;
const ITEMS_MAX: u64 = 100_000;
const CUSTOMERS_OF_100_ITEMS: u64 = 3;
/// The first payment of each customer, in cents.
pub(crate) const FIRST_PAYMENT: i64 = 1000;
/// The most last names.
const NAMES: u64 = 1000;

/// The sizes of the tables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub(crate) warehouses: u32,
    /// Customers of each district.
    pub(crate) customers: u32,
    pub(crate) items: u32,
}

/// The number of lines of an order.
pub(crate) const LINES: std::ops::RangeInclusive<u64> = 5..=15;

/// Draws a number within bounds.
pub(crate) fn within(rng: &mut Rng, bounds: std::ops::RangeInclusive<u64>) -> u64 {
    bounds.start() + rng.below(bounds.end() - bounds.start() + 1)
}

/// Draws a non-uniform number below `count`, as NURand of clause 2.1.6.
fn skewed(rng: &mut Rng, a: u64, count: u64) -> u64 {
    /// The standard's C, which may be any number.
    const C: u64 = 91;
    ((rng.below(a + 1) | rng.below(count)) + C) % count
}

impl Scale {
    /// Returns the scale for this many items, clamped to the standard's.
    pub(crate) fn of(warehouses: u32, items: u64) -> Scale {
        let items = items.clamp(ITEMS_MIN, ITEMS_MAX);
        let customers = items * CUSTOMERS_OF_100_ITEMS / 100;
        Scale { warehouses, customers: customers as u32, items: items as u32 }
    }

    /// Returns how many of a district's first orders are delivered.
    pub(crate) fn delivered(self) -> u32 {
        self.customers - self.customers * 3 / 10
    }

    pub(crate) fn districts(self) -> impl Iterator<Item = DistrictId> {
        (0..self.warehouses).flat_map(|warehouse| {
            (0..DISTRICTS).map(move |district| DistrictId { warehouse, district })
        })
    }

    pub(crate) fn draw_customer(self, rng: &mut Rng) -> u32 {
        skewed(rng, 1023, self.customers.into()) as u32
    }

    pub(crate) fn draw_item(self, rng: &mut Rng) -> u32 {
        skewed(rng, 8191, self.items.into()) as u32
    }

    /// Draws the number of a last name that some customer of every district has.
    pub(crate) fn draw_name(self, rng: &mut Rng) -> u64 {
        skewed(rng, 255, self.names())
    }

    fn names(self) -> u64 {
        NAMES.min(self.customers.into())
    }

    /// Returns a customer's last name, by number. The first customers have each name once.
    fn name_of(self, customer: u32, rng: &mut Rng) -> u64 {
        let customer = u64::from(customer);
        if customer < self.names() { customer } else { self.draw_name(rng) }
    }

    /// Fills an empty store.
    pub(crate) fn load(self, store: &dyn TransactionalStore, seed: u64) -> Result<()> {
        let mut rng = Rng::new(scramble(seed ^ 0x7470_6363));
        let filler = Filler { store };
        for item in 0..self.items {
            let price = within(&mut rng, 100..=10_000) as i64;
            filler.put(ITEM.space, &item_key(item), &ITEM.row([price]))?;
        }
        let paid = FIRST_PAYMENT * i64::from(self.customers);
        for warehouse in 0..self.warehouses {
            let row = [paid * i64::from(DISTRICTS), tax(&mut rng)];
            filler.put(WAREHOUSE.space, &warehouse_key(warehouse), &WAREHOUSE.row(row))?;
            for item in 0..self.items {
                let row = [within(&mut rng, 10..=100) as i64, 0, 0, 0];
                filler.put(STOCK.space, &stock_key(warehouse, item), &STOCK.row(row))?;
            }
        }
        for district in self.districts() {
            let row = [paid, tax(&mut rng), self.customers.into()];
            filler.put(DISTRICT.space, &district.key(), &DISTRICT.row(row))?;
            self.load_customers(&filler, district, &mut rng)?;
            self.load_orders(&filler, district, &mut rng)?;
        }
        Ok(())
    }

    fn load_customers(
        self,
        filler: &Filler<'_>,
        district: DistrictId,
        rng: &mut Rng,
    ) -> Result<()> {
        for customer in 0..self.customers {
            let name = self.name_of(customer, rng);
            let discount = rng.below(5001) as i64;
            let row = [-FIRST_PAYMENT, FIRST_PAYMENT, 1, discount, name as i64];
            filler.put(CUSTOMER.space, &district.key_of(customer), &CUSTOMER.row(row))?;
            let key = district.name_key(&last_name(name), customer);
            filler.put(CUSTOMER_BY_NAME, &key, &[])?;
            let key = history_key(district, customer, None);
            filler.put(HISTORY.space, &key, &HISTORY.row([FIRST_PAYMENT]))?;
        }
        Ok(())
    }

    /// Loads an order for each customer, in random order.
    fn load_orders(self, filler: &Filler<'_>, district: DistrictId, rng: &mut Rng) -> Result<()> {
        let mut customers: Vec<u32> = (0..self.customers).collect();
        rng.shuffle(&mut customers);
        for (order, customer) in (0..).zip(customers) {
            let (lines, is_new) = (within(rng, LINES), order >= self.delivered());
            let carrier = if is_new { 0 } else { within(rng, 1..=10) as i64 };
            let row = [i64::from(customer), carrier, lines as i64, 1];
            filler.put(ORDER.space, &district.key_of(order), &ORDER.row(row))?;
            let key = district.customer_order_key(customer, order);
            filler.put(ORDER_BY_CUSTOMER, &key, &[])?;
            if is_new {
                filler.put(NEW_ORDER, &district.key_of(order), &[])?;
            }
            for line in 0..lines as u8 {
                let item = i64::from(self.draw_item(rng));
                let amount = if is_new { within(rng, 1..=999_999) as i64 } else { 0 };
                let row = [item, district.warehouse.into(), 5, amount, i64::from(!is_new)];
                filler.put(
                    ORDER_LINE.space,
                    &district.line_key(order, line),
                    &ORDER_LINE.row(row),
                )?;
            }
        }
        Ok(())
    }
}

/// Returns the key of a payment. `by`: the client, and the number of its payment; None: the payment
/// is part of the filling.
pub(crate) fn history_key(
    district: DistrictId,
    customer: u32,
    by: Option<(usize, u64)>,
) -> Vec<u8> {
    let mut key = district.key_of(customer);
    let (client, nth) = by.map_or((0, 0), |(client, nth)| (client as u32 + 1, nth));
    key.extend_from_slice(&client.to_be_bytes());
    key.extend_from_slice(&nth.to_be_bytes());
    key
}

fn tax(rng: &mut Rng) -> i64 {
    rng.below(2001) as i64
}

/// Writes rows without transactions.
struct Filler<'a> {
    store: &'a dyn TransactionalStore,
}

impl Filler<'_> {
    fn put(&self, space: Space, key: &[u8], row: &[u8]) -> Result<()> {
        self.store.put(space, key, row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_is_the_standards_from_100_000_items_on() {
        let full = Scale::of(2, 5_000_000);
        assert_eq!((full.customers, full.items, full.delivered()), (3000, 100_000, 2100));
        assert_eq!(full.districts().count(), 20);
        let small = Scale::of(1, 1000);
        assert_eq!((small.customers, small.names(), small.delivered()), (30, 30, 21));
    }

    #[test]
    fn draws_are_within_their_bounds_and_not_uniform() {
        let (mut rng, scale) = (Rng::new(3), Scale::of(1, 100_000));
        let mut counts = vec![0u32; scale.customers as usize];
        for _ in 0..100_000 {
            counts[scale.draw_customer(&mut rng) as usize] += 1;
            assert!(scale.draw_item(&mut rng) < scale.items && scale.draw_name(&mut rng) < 1000);
            assert!(LINES.contains(&within(&mut rng, LINES)));
        }
        counts.sort_unstable();
        let hottest: u32 = counts.iter().rev().take(300).sum();
        assert!(hottest > 20_000, "a tenth of the customers has {hottest} of 100,000");
    }
}
