//! The tables of TPC-C as key spaces. The bytes of keys have the order of their numbers. Rows are
//! words followed by filler.
//! ```text
//! key   warehouse u32 | district u8 | ...           big-endian
//! row   i64 | i64 | ... | filler                    little-endian; the length as the standard's
//! ```
//! Invariant: a row is about as long as the standard's columns, whatever numbers it has.

use crate::compare::{OpenTransaction, Space};
use crate::error::{LabError, Result};

/// The key spaces, in the order of their constants below.
pub(crate) const SPACES: &[&str] = &[
    "warehouse",
    "district",
    "customer",
    "customer_by_name",
    "order",
    "order_by_customer",
    "new_order",
    "order_line",
    "stock",
    "history",
    "item",
];

pub(crate) const WAREHOUSE: Table<2> = Table::new(0, 89);
pub(crate) const DISTRICT: Table<3> = Table::new(1, 95);
pub(crate) const CUSTOMER: Table<5> = Table::new(2, 655);
/// A secondary index; its rows are empty.
pub(crate) const CUSTOMER_BY_NAME: Space = Space(3);
pub(crate) const ORDER: Table<4> = Table::new(4, 36);
/// A secondary index with the newest order of a customer first; its rows are empty.
pub(crate) const ORDER_BY_CUSTOMER: Space = Space(5);
pub(crate) const NEW_ORDER: Space = Space(6);
pub(crate) const ORDER_LINE: Table<5> = Table::new(7, 64);
pub(crate) const STOCK: Table<4> = Table::new(8, 306);
pub(crate) const HISTORY: Table<1> = Table::new(9, 46);
pub(crate) const ITEM: Table<1> = Table::new(10, 82);

/// Words of a warehouse. Taxes and discounts are in units of 1/10,000, money is in cents.
pub(crate) mod warehouse {
    pub(crate) const YTD: usize = 0;
    pub(crate) const TAX: usize = 1;
}

/// Words of a district.
pub(crate) mod district {
    pub(crate) const YTD: usize = 0;
    pub(crate) const TAX: usize = 1;
    pub(crate) const NEXT_ORDER: usize = 2;
}

/// Words of a customer.
pub(crate) mod customer {
    pub(crate) const BALANCE: usize = 0;
    pub(crate) const YTD_PAYMENT: usize = 1;
    pub(crate) const PAYMENTS: usize = 2;
    pub(crate) const DISCOUNT: usize = 3;
    pub(crate) const NAME: usize = 4;
}

/// Words of an order.
pub(crate) mod order {
    pub(crate) const CUSTOMER: usize = 0;
    /// 0: the order is not delivered.
    pub(crate) const CARRIER: usize = 1;
    pub(crate) const LINES: usize = 2;
    pub(crate) const ALL_LOCAL: usize = 3;
}

/// Words of an order's line.
pub(crate) mod order_line {
    pub(crate) const ITEM: usize = 0;
    pub(crate) const SUPPLIER: usize = 1;
    pub(crate) const QUANTITY: usize = 2;
    pub(crate) const AMOUNT: usize = 3;
    /// 0: the line is not delivered.
    pub(crate) const DELIVERED: usize = 4;
}

/// Words of a warehouse's stock of an item.
pub(crate) mod stock {
    pub(crate) const QUANTITY: usize = 0;
    pub(crate) const YTD: usize = 1;
    pub(crate) const ORDERS: usize = 2;
    pub(crate) const REMOTE: usize = 3;
}

/// A table whose rows have `WORDS` words.
#[derive(Clone, Copy)]
pub(crate) struct Table<const WORDS: usize> {
    pub(crate) space: Space,
    row_bytes: usize,
}

impl<const WORDS: usize> Table<WORDS> {
    const fn new(space: usize, row_bytes: usize) -> Self {
        assert!(WORDS * size_of::<i64>() <= row_bytes);
        Table { space: Space(space), row_bytes }
    }

    pub(crate) fn row(&self, words: [i64; WORDS]) -> Vec<u8> {
        let mut row: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        row.resize(self.row_bytes, b'.');
        row
    }

    /// Returns the words of a row. None: the row has another length.
    pub(crate) fn words(&self, row: &[u8]) -> Option<[i64; WORDS]> {
        let (words, _) = row.as_chunks::<8>();
        let words = words.get(..WORDS).filter(|_| row.len() == self.row_bytes)?;
        let words: Vec<i64> = words.iter().map(|word| i64::from_le_bytes(*word)).collect();
        words.try_into().ok()
    }

    /// Looks up a row. None: there is no such row.
    pub(crate) fn find(
        &self,
        open: &dyn OpenTransaction,
        key: &[u8],
    ) -> Result<Option<[i64; WORDS]>> {
        let mut words = None;
        let found = open.get(self.space, key, &mut |row| words = self.words(row))?;
        if found && words.is_none() {
            return Err(self.bad(key, "is damaged"));
        }
        Ok(words)
    }

    /// Looks up a row of the first filling. An error if it is missing.
    pub(crate) fn get(&self, open: &dyn OpenTransaction, key: &[u8]) -> Result<[i64; WORDS]> {
        self.find(open, key)?.ok_or_else(|| self.bad(key, "is missing"))
    }

    pub(crate) fn put(
        &self,
        open: &dyn OpenTransaction,
        key: &[u8],
        words: [i64; WORDS],
    ) -> Result<()> {
        open.put(self.space, key, &self.row(words))
    }

    fn bad(&self, key: &[u8], what: &str) -> LabError {
        LabError::Peer(format!("{}: the row {key:02x?} {what}", SPACES[self.space.0]))
    }
}

/// A district of a warehouse; both count from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct DistrictId {
    pub(crate) warehouse: u32,
    pub(crate) district: u8,
}

impl DistrictId {
    pub(crate) fn key(self) -> Vec<u8> {
        let mut key = warehouse_key(self.warehouse).to_vec();
        key.push(self.district);
        key
    }

    /// Returns the key of a customer or an order of the district, by number.
    pub(crate) fn key_of(self, number: u32) -> Vec<u8> {
        let mut key = self.key();
        key.extend_from_slice(&number.to_be_bytes());
        key
    }

    pub(crate) fn line_key(self, order: u32, line: u8) -> Vec<u8> {
        let mut key = self.key_of(order);
        key.push(line);
        key
    }

    /// Returns the key of an index by last name: the name, terminated by 0, and the customer.
    pub(crate) fn name_key(self, name: &str, customer: u32) -> Vec<u8> {
        let mut key = self.name_prefix(name);
        key.extend_from_slice(&customer.to_be_bytes());
        key
    }

    pub(crate) fn name_prefix(self, name: &str) -> Vec<u8> {
        let mut key = self.key();
        key.extend_from_slice(name.as_bytes());
        key.push(0);
        key
    }

    /// Returns the key of an index by customer, in which newer orders come first.
    pub(crate) fn customer_order_key(self, customer: u32, order: u32) -> Vec<u8> {
        let mut key = self.key_of(customer);
        key.extend_from_slice(&(u32::MAX - order).to_be_bytes());
        key
    }

    /// Returns the district of a row's key. None: the key is too short.
    pub(crate) fn of_key(key: &[u8]) -> Option<DistrictId> {
        let warehouse = u32::from_be_bytes(*key.first_chunk()?);
        Some(DistrictId { warehouse, district: *key.get(size_of::<u32>())? })
    }
}

pub(crate) fn warehouse_key(warehouse: u32) -> [u8; 4] {
    warehouse.to_be_bytes()
}

pub(crate) fn stock_key(warehouse: u32, item: u32) -> [u8; 8] {
    ((u64::from(warehouse) << 32) | u64::from(item)).to_be_bytes()
}

pub(crate) fn item_key(item: u32) -> [u8; 4] {
    item.to_be_bytes()
}

/// Returns the last four bytes of a key as a number. None: the key is shorter.
pub(crate) fn last_number(key: &[u8]) -> Option<u32> {
    key.last_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

/// Returns the last name with this number below 1000 (clause 4.3.2.3).
pub(crate) fn last_name(number: u64) -> String {
    const SYLLABLES: [&str; 10] =
        ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
    let syllable = |place: u64| SYLLABLES[(number / place % 10) as usize];
    [syllable(100), syllable(10), syllable(1)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_back_and_short_ones_are_not() {
        let row = DISTRICT.row([-5, 1234, i64::MAX]);
        assert_eq!((row.len(), DISTRICT.words(&row)), (95, Some([-5, 1234, i64::MAX])));
        assert_eq!(DISTRICT.words(&row[..94]), None);
        assert_eq!((SPACES.len(), SPACES[ITEM.space.0]), (11, "item"));
        assert_eq!(SPACES[NEW_ORDER.0], "new_order");
    }

    #[test]
    fn keys_are_in_the_order_of_their_numbers() {
        let at = |warehouse, district| DistrictId { warehouse, district };
        assert!(at(1, 9).key_of(u32::MAX) < at(2, 0).key_of(0));
        assert!(at(1, 1).line_key(7, 15) < at(1, 1).line_key(8, 0));
        assert!(at(1, 1).customer_order_key(3, 9) < at(1, 1).customer_order_key(3, 8));
        let name = at(0, 0).name_key("BAROUGHT", 258);
        assert!(name.starts_with(&at(0, 0).name_prefix("BAROUGHT")));
        assert!(!name.starts_with(&at(0, 0).name_prefix("BAR")), "a name ends");
        assert_eq!((DistrictId::of_key(&name), last_number(&name)), (Some(at(0, 0)), Some(258)));
    }

    #[test] // Clause 4.3.2.3: "371" is PRICALLYOUGHT, "40" is BARPRESBAR.
    fn names_are_of_three_syllables() {
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(last_name(40), "BARPRESBAR");
    }
}
