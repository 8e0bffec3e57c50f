//! A press that prints sheets.
use std::collections::{hash_map::Entry, HashMap as Map};
use std::fmt;
use crate::ink::*;

mod paper;

pub const MAX_SHEETS: usize = 500;
static mut COUNT: u32 = 0;

/// What can be printed.
pub trait Printable: fmt::Debug + Clone {
    const COPIES: u8;
    type Plate;

    fn plate(&self) -> Self::Plate;

    fn copies(&self) -> u8 {
        Self::COPIES.max(1)
    }
}

#[derive(Debug, Clone)]
pub struct Press<T: Printable> {
    queue: Vec<T>,
    pub inks: Map<String, Ink>,
}

struct Sheet(u32);

pub enum Fault {
    Jam,
    Empty { tray: u8 },
}

impl<T: Printable> Press<T> {
    pub fn new() -> Self {
        Press { queue: Vec::with_capacity(MAX_SHEETS), inks: Map::new() }
    }

    pub async fn run(&mut self, job: &dyn Job) -> Result<Sheet, Fault> {
        let sheet = self.queue.pop().map(|item| item.copies()).ok_or(Fault::Jam)?;
        let text = describe::<T>(sheet);
        println!("printing {}", trim(text));
        Ok(Sheet(sheet.into()))
    }
}

impl<T> fmt::Display for Press<T> where T: Printable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "press")
    }
}

macro_rules! sheet {
    ($n:expr) => {
        Sheet($n)
    };
}

pin_project! {
    pub struct Drying { #[pin] sheet: Sheet }
}

type Tray = Vec<Sheet>;

mod tests {
    #[test]
    fn prints() {
        assert_eq!(super::count(), 1);
    }
}
