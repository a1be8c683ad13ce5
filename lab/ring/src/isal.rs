//! Intel's library on the same buffers, to compare with.

use std::ffi::{c_int, c_uchar};

use standfast_ring::Matrix;

#[link(name = "isal")]
unsafe extern "C" {
    fn ec_init_tables(k: c_int, rows: c_int, matrix: *mut c_uchar, tables: *mut c_uchar);
    fn ec_encode_data(
        bytes: c_int,
        k: c_int,
        rows: c_int,
        tables: *mut c_uchar,
        sources: *mut *mut c_uchar,
        out: *mut *mut c_uchar,
    );
    fn gf_vect_mad(
        bytes: c_int,
        columns: c_int,
        column: c_int,
        tables: *mut c_uchar,
        source: *mut c_uchar,
        out: *mut c_uchar,
    ) -> c_int;
}

/// A matrix made ready for ISA-L.
pub(super) struct Encoder {
    rows: usize,
    columns: usize,
    tables: Vec<u8>,
}

impl Encoder {
    pub(super) fn new(matrix: &Matrix) -> Self {
        let (rows, columns) = (matrix.rows(), matrix.columns());
        let mut tables = vec![0; 32 * rows * columns];
        let mut cells = matrix.cells().to_vec();
        // SAFETY: the library wants rows x columns cells and 32 bytes of tables for each.
        unsafe {
            ec_init_tables(
                columns as c_int,
                rows as c_int,
                cells.as_mut_ptr(),
                tables.as_mut_ptr(),
            );
        }
        Self { rows, columns, tables }
    }

    /// `out += factor * source`, of a matrix of one cell.
    pub(super) fn multiply_add(&self, out: &mut [u8], source: &[u8]) {
        assert!((self.rows, self.columns) == (1, 1) && out.len() == source.len());
        // SAFETY: two buffers of that length and the tables of one cell; the library only reads
        // source and tables.
        let refused = unsafe {
            gf_vect_mad(
                out.len() as c_int,
                1,
                0,
                self.tables.as_ptr().cast_mut(),
                source.as_ptr().cast_mut(),
                out.as_mut_ptr(),
            )
        };
        assert_eq!(refused, 0, "it takes any length from 64 bytes on");
    }

    pub(super) fn encode(&self, out: &mut [&mut [u8]], sources: &[&[u8]]) {
        assert!(out.len() == self.rows && sources.len() == self.columns);
        let bytes = out.first().map_or(0, |out| out.len());
        assert!(out.iter().all(|out| out.len() == bytes));
        assert!(sources.iter().all(|source| source.len() == bytes));
        let mut from: Vec<*mut c_uchar> = sources.iter().map(|s| s.as_ptr().cast_mut()).collect();
        let mut to: Vec<*mut c_uchar> = out.iter_mut().map(|out| out.as_mut_ptr()).collect();
        // SAFETY: as many buffers of `bytes` as the matrix has columns and rows; the library only
        // reads sources and tables.
        unsafe {
            ec_encode_data(
                bytes as c_int,
                self.columns as c_int,
                self.rows as c_int,
                self.tables.as_ptr().cast_mut(),
                from.as_mut_ptr(),
                to.as_mut_ptr(),
            );
        }
    }
}
