//! Checks the consistency conditions (clause 3.3.2), and what follows from the number of commits.
//! ```text
//! 1   W_YTD = sum(D_YTD)                       5   no carrier: there is a row of NEW-ORDER
//! 2   D_NEXT_O_ID = max(O_ID) + 1              6   O_OL_CNT = lines of this order
//!                 = max(NO_O_ID) + 1           8   W_YTD = sum(H_AMOUNT)
//! 3   NO_O_ID have no gaps                     9   D_YTD = sum(H_AMOUNT)
//! 4   sum(O_OL_CNT) = order lines              10  C_BALANCE = -C_YTD_PAYMENT
//! 7   a line is delivered: its order has a carrier
//! ```
//! Nothing is delivered during a run, so condition 10 has no delivered amounts. Numbers begin with
//! 0 here, so condition 2 has "+ 1" where the standard has "- 1" on one side.
//! Invariant: every row of every table is read.

use std::collections::{BTreeMap, BTreeSet};

use crate::compare::{Space, TransactionalStore};
use crate::error::Result;
use crate::transactions::tpcc::scale::Scale;
use crate::transactions::tpcc::schema::{
    CUSTOMER, CUSTOMER_BY_NAME, DISTRICT, DistrictId, HISTORY, ITEM, NEW_ORDER, ORDER,
    ORDER_BY_CUSTOMER, ORDER_LINE, STOCK, Table, WAREHOUSE, customer, district, last_name,
    last_number, order, order_line, stock, warehouse,
};
use crate::transactions::tpcc::{NEW_ORDERS, PAYMENTS};
use crate::transactions::work::{Totals, each_entry, unequal};

/// The sums over the rows of one district.
#[derive(Default)]
struct District {
    ytd: i128,
    next_order: i128,
    customers: i128,
    names: i128,
    orders: BTreeMap<u32, Order>,
    new_orders: BTreeSet<u32>,
    indexed_orders: i128,
    history: i128,
    payments: i128,
}

/// The facts from the rows of one order.
#[derive(Default)]
struct Order {
    /// Whether the row of ORDER exists.
    is_there: bool,
    customer: i64,
    is_open: bool,
    is_local: bool,
    lines_said: i128,
    lines: i128,
    /// Lines among these of another warehouse, and delivered lines.
    remote_lines: i128,
    delivered_lines: i128,
}

/// The facts from all rows of a store.
#[derive(Default)]
struct RowFacts {
    districts: BTreeMap<DistrictId, District>,
    warehouses: BTreeMap<u32, i128>,
    stock_orders: i128,
    stock_ytd: i128,
    stock_remote: i128,
    /// Lines that are not part of the first filling.
    new_lines: i128,
    new_quantity: i128,
    new_remote: i128,
    /// Lines among these whose amount is not quantity times price.
    wrong_amounts: i128,
    unbalanced: i128,
    payments: i128,
    /// Rows that do not decode, and index rows without a matching row.
    bad: i128,
}

pub(super) fn check(
    store: &dyn TransactionalStore,
    scale: Scale,
    totals: &Totals,
) -> Result<Vec<String>> {
    let mut facts = RowFacts::default();
    facts.look_at_places(store)?;
    facts.look_at_customers(store)?;
    facts.look_at_orders(store)?;
    facts.look_at_lines(store, scale)?;
    let mut problems: Vec<Option<String>> = facts.districts.iter().flat_map(of_district).collect();
    problems.extend(facts.of_warehouses());
    let customers = i128::from(scale.customers);
    let of_all = |of: fn(&District) -> i128| facts.districts.values().map(of).sum::<i128>();
    let (districts, stocks) = (scale.districts().count() as i128, facts.stock_orders);
    let (orders, paid) = (totals.written(NEW_ORDERS), totals.written(PAYMENTS));
    problems.extend([
        unequal("districts", facts.districts.len() as i128, districts),
        unequal(
            "orders made",
            of_all(|it| it.next_order),
            customers * districts + i128::from(orders),
        ),
        unequal(
            "payments made",
            of_all(|it| it.payments),
            customers * districts + i128::from(paid),
        ),
        unequal("C_PAYMENT_CNT", facts.payments, of_all(|it| it.payments)),
        unequal("customers", of_all(|it| it.customers), customers * districts),
        unequal("S_ORDER_CNT", stocks, facts.new_lines),
        unequal("S_YTD", facts.stock_ytd, facts.new_quantity),
        unequal("S_REMOTE_CNT", facts.stock_remote, facts.new_remote),
        unequal("lines whose OL_AMOUNT is wrong", facts.wrong_amounts, 0),
        unequal("customers whose balance is wrong (condition 10)", facts.unbalanced, 0),
        unequal("rows that are damaged or fit no other", facts.bad, 0),
    ]);
    Ok(problems.into_iter().flatten().collect())
}

impl Order {
    /// Whether conditions 6 and 7 hold.
    fn is_right(&self) -> bool {
        let delivered = if self.is_open { 0 } else { self.lines };
        let is_local = self.remote_lines == 0;
        self.is_there
            && self.lines == self.lines_said
            && self.delivered_lines == delivered
            && self.is_local == is_local
    }
}

fn of_district((id, it): (&DistrictId, &District)) -> Vec<Option<String>> {
    let said = |what: &str| format!("{what}, warehouse {} district {}", id.warehouse, id.district);
    let after = |orders: Option<&u32>| orders.map_or(0, |last| i128::from(*last) + 1);
    let first = it.new_orders.first().map_or(0, |first| i128::from(*first));
    let last = after(it.new_orders.last());
    let open = it.orders.iter().filter(|(_, order)| order.is_open).map(|(number, _)| number);
    let differ = i128::from(!open.eq(it.new_orders.iter()));
    let sum = |of: fn(&Order) -> i128| it.orders.values().map(of).sum::<i128>();
    let (lines_said, lines) = (sum(|order| order.lines_said), sum(|order| order.lines));
    let wrong = it.orders.values().filter(|order| !order.is_right()).count() as i128;
    let (orders, new_orders) = (it.orders.len() as i128, it.new_orders.len() as i128);
    let last_order = after(it.orders.keys().next_back());
    vec![
        unequal(&said("D_NEXT_O_ID (condition 2)"), it.next_order, last_order),
        unequal(&said("max(NO_O_ID) + 1 (condition 2)"), last, it.next_order),
        unequal(&said("rows of NEW-ORDER (condition 3)"), new_orders, last - first),
        unequal(&said("order lines (condition 4)"), lines, lines_said),
        unequal(&said("open orders are not those of NEW-ORDER (condition 5)"), differ, 0),
        unequal(&said("orders with other lines (conditions 6 and 7)"), wrong, 0),
        unequal(&said("D_YTD (condition 9)"), it.ytd, it.history),
        unequal(&said("orders"), orders, it.next_order),
        unequal(&said("orders in the index by customer"), it.indexed_orders, orders),
        unequal(&said("customers in the index by name"), it.names, it.customers),
    ]
}

impl RowFacts {
    fn district(&mut self, key: &[u8]) -> &mut District {
        let id = DistrictId::of_key(key);
        self.bad += i128::from(id.is_none());
        self.districts.entry(id.unwrap_or(DistrictId { warehouse: 0, district: 0 })).or_default()
    }

    /// Passes each row of a table to `see`; rows that do not decode are counted.
    fn each<const WORDS: usize>(
        &mut self,
        store: &dyn TransactionalStore,
        table: Table<WORDS>,
        mut see: impl FnMut(&mut RowFacts, &[u8], [i64; WORDS]),
    ) -> Result<()> {
        each_entry(store, table.space, |key, row| match table.words(row) {
            Some(words) => see(self, key, words),
            None => self.bad += 1,
        })
    }

    fn each_indexed(
        &mut self,
        store: &dyn TransactionalStore,
        space: Space,
        mut see: impl FnMut(&mut RowFacts, &[u8], u32),
    ) -> Result<()> {
        each_entry(store, space, |key, _| match last_number(key) {
            Some(number) => see(self, key, number),
            None => self.bad += 1,
        })
    }

    fn look_at_places(&mut self, store: &dyn TransactionalStore) -> Result<()> {
        self.each(store, WAREHOUSE, |facts, key, row| match last_number(key) {
            Some(id) => _ = facts.warehouses.insert(id, row[warehouse::YTD].into()),
            None => facts.bad += 1,
        })?;
        self.each(store, DISTRICT, |facts, key, row| {
            let it = facts.district(key);
            it.ytd = row[district::YTD].into();
            it.next_order = row[district::NEXT_ORDER].into();
        })?;
        self.each(store, STOCK, |facts, _, row| {
            facts.stock_orders += i128::from(row[stock::ORDERS]);
            facts.stock_ytd += i128::from(row[stock::YTD]);
            facts.stock_remote += i128::from(row[stock::REMOTE]);
        })?;
        self.each(store, HISTORY, |facts, key, [amount]| {
            let it = facts.district(key);
            it.history += i128::from(amount);
            it.payments += 1;
        })
    }

    fn look_at_customers(&mut self, store: &dyn TransactionalStore) -> Result<()> {
        let mut names = BTreeMap::new();
        self.each(store, CUSTOMER, |facts, key, row| {
            facts.district(key).customers += 1;
            facts.payments += i128::from(row[customer::PAYMENTS]);
            let sum = row[customer::BALANCE] + row[customer::YTD_PAYMENT];
            facts.unbalanced += i128::from(sum != 0);
            names.insert(key.to_vec(), row[customer::NAME]);
        })?;
        self.each_indexed(store, CUSTOMER_BY_NAME, |facts, key, number| {
            facts.district(key).names += 1;
            let id = DistrictId::of_key(key);
            let name = id.and_then(|id| Some((id, *names.get(&id.key_of(number))?)));
            let is_right = name.is_some_and(|(id, name)| {
                id.name_key(&last_name(name.unsigned_abs()), number) == key
            });
            facts.bad += i128::from(!is_right);
        })
    }

    fn look_at_orders(&mut self, store: &dyn TransactionalStore) -> Result<()> {
        self.each(store, ORDER, |facts, key, row| {
            let Some(number) = last_number(key) else { return facts.bad += 1 };
            let it = facts.district(key).orders.entry(number).or_default();
            it.is_there = true;
            it.customer = row[order::CUSTOMER];
            it.is_open = row[order::CARRIER] == 0;
            it.lines_said = row[order::LINES].into();
            it.is_local = row[order::ALL_LOCAL] != 0;
        })?;
        self.each_indexed(store, NEW_ORDER, |facts, key, number| {
            facts.district(key).new_orders.insert(number);
        })?;
        self.each_indexed(store, ORDER_BY_CUSTOMER, |facts, key, number| {
            let order = u32::MAX - number;
            let it = facts.district(key);
            it.indexed_orders += 1;
            let customer = it.orders.get(&order).map(|order| order.customer);
            let id = DistrictId::of_key(key).zip(customer);
            let is_right = id
                .is_some_and(|(id, customer)| id.customer_order_key(customer as u32, order) == key);
            facts.bad += i128::from(!is_right);
        })
    }

    fn look_at_lines(&mut self, store: &dyn TransactionalStore, scale: Scale) -> Result<()> {
        let mut prices = BTreeMap::new();
        self.each(store, ITEM, |_, key, [price]| {
            prices.insert(last_number(key), price);
        })?;
        self.each(store, ORDER_LINE, |facts, key, row| {
            let number = key.split_last().and_then(|(_, order)| last_number(order));
            let Some((number, id)) = number.zip(DistrictId::of_key(key)) else {
                return facts.bad += 1;
            };
            let is_remote = i128::from(row[order_line::SUPPLIER] != i64::from(id.warehouse));
            let order = facts.district(key).orders.entry(number).or_default();
            order.lines += 1;
            order.remote_lines += is_remote;
            order.delivered_lines += i128::from(row[order_line::DELIVERED] != 0);
            if number < scale.customers {
                return;
            }
            let price = prices.get(&u32::try_from(row[order_line::ITEM]).ok());
            let amount = price.map(|price| price * row[order_line::QUANTITY]);
            facts.wrong_amounts += i128::from(amount != Some(row[order_line::AMOUNT]));
            facts.new_lines += 1;
            facts.new_remote += is_remote;
            facts.new_quantity += i128::from(row[order_line::QUANTITY]);
        })
    }

    /// Checks condition 1, and with it condition 8, since condition 9 says the same of districts.
    fn of_warehouses(&self) -> Vec<Option<String>> {
        let of = |(id, ytd): (&u32, &i128)| {
            let own = self.districts.iter().filter(|(district, _)| district.warehouse == *id);
            let sum = own.map(|(_, district)| district.ytd).sum();
            unequal(&format!("W_YTD (condition 1), warehouse {id}"), *ytd, sum)
        };
        self.warehouses.iter().map(of).collect()
    }
}
