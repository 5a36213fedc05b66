//! TPC-C's new orders, payments and order status in the standard's proportions of 45 : 43 : 4, by
//! clients without think time (clauses 2.4, 2.5, 2.6).
//! ```text
//! new order      district's next number | customer | 5 to 15 items and stocks -> order, its lines
//! payment        warehouse, district, customer (6 of 10 by last name)         -> year to date
//! order status   customer, its last order by an index, its lines              -> nothing
//! ```
//! Deliveries, stock levels and keying times are left out, so the results are not TPC-C results.
//! Invariant: the conditions of clause 3.3.2 hold at every moment; `check` tests them at the end.

mod check;
mod scale;
mod schema;

use crate::compare::{OpenTransaction, TransactionalStore};
use crate::error::{LabError, Result};
use crate::keys::rng::Rng;
use crate::transactions::tpcc::scale::{DISTRICTS, LINES, Scale, history_key, within};
use crate::transactions::tpcc::schema::{
    CUSTOMER, CUSTOMER_BY_NAME, DISTRICT, DistrictId, HISTORY, ITEM, NEW_ORDER, ORDER,
    ORDER_BY_CUSTOMER, ORDER_LINE, SPACES, STOCK, WAREHOUSE, customer, district, item_key,
    last_name, last_number, order, stock, stock_key, warehouse, warehouse_key,
};
use crate::transactions::work::{Client, Done, Totals, Work};

/// The workload over the warehouses of one store.
pub(crate) struct Tpcc {
    scale: Scale,
    seed: u64,
}

/// Kinds of transactions, by their index among the names.
const NEW_ORDERS: usize = 0;
const PAYMENTS: usize = 1;
const STATUSES: usize = 2;
const KINDS: &[&str] = &["new_order", "payment", "order_status"];
/// The proportions of the kinds.
const SHARES: [u64; 3] = [45, 43, 4];

/// A line of an order to make.
struct OrderLine {
    item: u32,
    supplier: u32,
    quantity: i64,
}

struct NewOrder {
    district: DistrictId,
    customer: u32,
    lines: Vec<OrderLine>,
}

/// How a customer is looked up.
#[derive(Clone, Copy)]
enum Who {
    Number(u32),
    /// By the number of a last name.
    Name(u64),
}

struct Payment {
    district: DistrictId,
    /// The district of the customer.
    home: DistrictId,
    who: Who,
    amount: i64,
    /// The client, and the number of its payment.
    by: (usize, u64),
}

impl Tpcc {
    /// Creates the workload for this many warehouses and items.
    pub(crate) fn new(warehouses: u32, items: u64, seed: u64) -> Self {
        Tpcc { scale: Scale::of(warehouses, items), seed }
    }

    /// Draws a district. Clients have different warehouses as far as there are enough.
    fn draw_district(&self, client: &mut Client) -> DistrictId {
        let warehouse = client.nth as u32 % self.scale.warehouses;
        DistrictId { warehouse, district: client.rng.below(DISTRICTS.into()) as u8 }
    }

    /// Draws another warehouse in `percent` of all cases, if there is one; otherwise returns the
    /// home warehouse.
    fn draw_warehouse(&self, home: u32, percent: u64, rng: &mut Rng) -> u32 {
        let is_remote = rng.below(100) < percent;
        let others = self.scale.warehouses - 1;
        match others {
            0 => home,
            others if is_remote => {
                (home + 1 + rng.below(others.into()) as u32) % self.scale.warehouses
            }
            _ => home,
        }
    }

    fn draw_who(&self, rng: &mut Rng) -> Who {
        match rng.below(100) < 60 {
            true => Who::Name(self.scale.draw_name(rng)),
            false => Who::Number(self.scale.draw_customer(rng)),
        }
    }

    fn draw_new_order(&self, client: &mut Client) -> NewOrder {
        let district = self.draw_district(client);
        let rng = &mut client.rng;
        let customer = self.scale.draw_customer(rng);
        let count = within(rng, LINES);
        let mut lines: Vec<OrderLine> = (0..count)
            .map(|_| OrderLine {
                item: self.scale.draw_item(rng),
                supplier: self.draw_warehouse(district.warehouse, 1, rng),
                quantity: within(rng, 1..=10) as i64,
            })
            .collect();
        // One order in a hundred has an unknown item, and is rolled back.
        if rng.below(100) == 0
            && let Some(last) = lines.last_mut()
        {
            last.item = self.scale.items;
        }
        NewOrder { district, customer, lines }
    }

    fn draw_payment(&self, client: &mut Client) -> Payment {
        let district = self.draw_district(client);
        let by = (client.nth, client.begun);
        let rng = &mut client.rng;
        let warehouse = self.draw_warehouse(district.warehouse, 15, rng);
        let home = match warehouse == district.warehouse {
            true => district,
            false => DistrictId { warehouse, district: rng.below(DISTRICTS.into()) as u8 },
        };
        let who = self.draw_who(rng);
        let amount = within(rng, 100..=500_000) as i64;
        Payment { district, home, who, amount, by }
    }
}

/// Returns the number of a customer. Of several with the same name, it is the middle one.
fn find_customer(open: &dyn OpenTransaction, home: DistrictId, who: Who) -> Result<u32> {
    let name = match who {
        Who::Number(number) => return Ok(number),
        Who::Name(name) => last_name(name),
    };
    let from = home.name_prefix(&name);
    let mut end = from.clone();
    *end.last_mut().expect("a name has an end") = 1;
    let mut found = Vec::new();
    let mut see = |key: &[u8], _: &[u8]| found.extend(last_number(key));
    open.scan(CUSTOMER_BY_NAME, (&from, Some(&end)), usize::MAX, &mut see)?;
    let middle = found.len().div_ceil(2).checked_sub(1);
    let number = middle.and_then(|middle| found.get(middle)).copied();
    number.ok_or_else(|| LabError::Peer(format!("no customer is called {name} in {home:?}")))
}

impl NewOrder {
    /// False: an item is unknown.
    fn run(&self, open: &dyn OpenTransaction) -> Result<bool> {
        let NewOrder { district: at, customer, lines } = self;
        let home = WAREHOUSE.get(open, &warehouse_key(at.warehouse))?;
        let mut row = DISTRICT.get(open, &at.key())?;
        let number = row[district::NEXT_ORDER] as u32;
        row[district::NEXT_ORDER] += 1;
        DISTRICT.put(open, &at.key(), row)?;
        let buyer = CUSTOMER.get(open, &at.key_of(*customer))?;
        let all_local = lines.iter().all(|line| line.supplier == at.warehouse);
        let order = [(*customer).into(), 0, lines.len() as i64, all_local.into()];
        ORDER.put(open, &at.key_of(number), order)?;
        open.put(ORDER_BY_CUSTOMER, &at.customer_order_key(*customer, number), &[])?;
        open.put(NEW_ORDER, &at.key_of(number), &[])?;
        let mut sum = 0;
        for (nth, line) in (0..).zip(lines) {
            let Some([price]) = ITEM.find(open, &item_key(line.item))? else { return Ok(false) };
            take_from_stock(open, line, line.supplier != at.warehouse)?;
            let amount = line.quantity * price;
            let row = [line.item.into(), line.supplier.into(), line.quantity, amount, 0];
            ORDER_LINE.put(open, &at.line_key(number, nth), row)?;
            sum += amount;
        }
        // Computes the total that the customer would be told.
        let taxed = 10_000 + home[warehouse::TAX] + row[district::TAX];
        std::hint::black_box(sum * (10_000 - buyer[customer::DISCOUNT]) * taxed);
        Ok(true)
    }
}

fn take_from_stock(open: &dyn OpenTransaction, line: &OrderLine, is_remote: bool) -> Result<()> {
    let key = stock_key(line.supplier, line.item);
    let mut row = STOCK.get(open, &key)?;
    let left = row[stock::QUANTITY] - line.quantity;
    row[stock::QUANTITY] = if left >= 10 { left } else { left + 91 };
    row[stock::YTD] += line.quantity;
    row[stock::ORDERS] += 1;
    row[stock::REMOTE] += i64::from(is_remote);
    STOCK.put(open, &key, row)
}

impl Payment {
    fn run(&self, open: &dyn OpenTransaction) -> Result<bool> {
        let Payment { district: at, home, who, amount, by } = self;
        let mut row = WAREHOUSE.get(open, &warehouse_key(at.warehouse))?;
        row[warehouse::YTD] += amount;
        WAREHOUSE.put(open, &warehouse_key(at.warehouse), row)?;
        let mut row = DISTRICT.get(open, &at.key())?;
        row[district::YTD] += amount;
        DISTRICT.put(open, &at.key(), row)?;
        let number = find_customer(open, *home, *who)?;
        let key = home.key_of(number);
        let mut row = CUSTOMER.get(open, &key)?;
        row[customer::BALANCE] -= amount;
        row[customer::YTD_PAYMENT] += amount;
        row[customer::PAYMENTS] += 1;
        CUSTOMER.put(open, &key, row)?;
        // The row belongs to the district in which the payment was made.
        HISTORY.put(open, &history_key(*at, number, Some(*by)), [*amount])?;
        Ok(true)
    }
}

/// Whether the customer's last order has as many lines as it says. Every customer has an order.
fn has_all_lines(open: &dyn OpenTransaction, at: DistrictId, who: Who) -> Result<bool> {
    let number = find_customer(open, at, who)?;
    CUSTOMER.get(open, &at.key_of(number))?;
    let prefix = at.key_of(number);
    let mut last = None;
    let mut see =
        |key: &[u8], _: &[u8]| last = last_number(key).filter(|_| key.starts_with(&prefix));
    open.scan(ORDER_BY_CUSTOMER, (&prefix, None), 1, &mut see)?;
    let Some(last) = last.map(|number| u32::MAX - number) else { return Ok(false) };
    let row = ORDER.get(open, &at.key_of(last))?;
    let (from, end) = (at.line_key(last, 0), at.line_key(last, u8::MAX));
    let lines = open.scan(ORDER_LINE.space, (&from, Some(&end)), usize::MAX, &mut |_, row| {
        std::hint::black_box(ORDER_LINE.words(row));
    })?;
    Ok(row[order::CUSTOMER] == i64::from(number) && row[order::LINES] == lines as i64)
}

impl Work for Tpcc {
    fn spaces(&self) -> &'static [&'static str] {
        SPACES
    }

    fn kinds(&self) -> &'static [&'static str] {
        KINDS
    }

    fn load(&self, store: &dyn TransactionalStore) -> Result<()> {
        self.scale.load(store, self.seed)
    }

    fn perform(&self, store: &dyn TransactionalStore, client: &mut Client) -> Result<Done> {
        client.begun += 1;
        let drawn = client.rng.below(SHARES.iter().sum());
        if drawn < SHARES[NEW_ORDERS] {
            let order = self.draw_new_order(client);
            let is_made = client.commit(store, |open| order.run(open))?;
            return Ok(Done::one(NEW_ORDERS).refused(!is_made));
        }
        if drawn < SHARES[NEW_ORDERS] + SHARES[PAYMENTS] {
            let payment = self.draw_payment(client);
            client.commit(store, |open| payment.run(open))?;
            return Ok(Done::one(PAYMENTS));
        }
        let (at, who) = (self.draw_district(client), self.draw_who(&mut client.rng));
        let mut is_whole = true;
        client.commit(store, |open| {
            is_whole &= has_all_lines(open, at, who)?;
            Ok(true)
        })?;
        client.wrong += u64::from(!is_whole);
        Ok(Done::one(STATUSES))
    }

    fn check(&self, store: &dyn TransactionalStore, totals: &Totals) -> Result<Vec<String>> {
        check::check(store, self.scale, totals)
    }
}
