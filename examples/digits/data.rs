//! The digits: gzipped lines of 64 grey values from 0 to 16 and a label.

use std::io::{Error, ErrorKind, Read};

use flate2::read::GzDecoder;

/// Pictures with their labels.
#[derive(Default)]
pub struct Part {
    /// 64 values from 0 to 1 for each picture.
    pub pixels: Vec<f32>,
    /// 0 to 9 for each picture.
    pub labels: Vec<u32>,
}

/// All pictures, split once and for all: every fifth is for the test.
#[derive(Default)]
pub struct Digits {
    /// Four fifths.
    pub train: Part,
    /// The rest.
    pub test: Part,
}

impl Digits {
    /// Reads what was compiled into the program.
    pub fn read() -> Result<Digits, Error> {
        let mut text = String::new();
        GzDecoder::new(&include_bytes!("../data/digits.csv.gz")[..]).read_to_string(&mut text)?;
        let mut digits = Digits::default();
        for (number, line) in text.lines().enumerate() {
            let fault = || Error::new(ErrorKind::InvalidData, format!("line {} of the digits: {line}", number + 1));
            let values: Vec<u32> = line.split(',').map(str::parse).collect::<Result<_, _>>().map_err(|_| fault())?;
            let (label, pixels) = values.split_last().filter(|(_, pixels)| pixels.len() == 64).ok_or_else(fault)?;
            let part = if number % 5 == 4 { &mut digits.test } else { &mut digits.train };
            part.pixels.extend(pixels.iter().map(|value| *value as f32 / 16.0));
            part.labels.push(*label);
        }
        Ok(digits)
    }
}
