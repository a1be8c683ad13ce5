//! The driver's failures in our words.

use cudarc::driver::DriverError;
use cudarc::driver::sys::CUresult;

use crate::error::{Error, Unavailable};

impl Error {
    pub(crate) fn of(what: &'static str) -> impl FnOnce(DriverError) -> Error {
        move |error| {
            let code = name_of(error);
            match is_fatal(error.0) {
                true => Error::Lost { what, code },
                false => Error::Driver { what, code },
            }
        }
    }

    pub(crate) fn of_memory(what: &'static str, bytes: usize) -> impl FnOnce(DriverError) -> Error {
        move |error| match error.0 {
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => Error::OutOfMemory { what, bytes },
            _ => Error::of(what)(error),
        }
    }
}

impl Unavailable {
    pub(crate) fn of(error: DriverError) -> Self {
        match error.0 {
            CUresult::CUDA_ERROR_NO_DEVICE | CUresult::CUDA_ERROR_INVALID_DEVICE => {
                Unavailable::NoDevice
            }
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => Unavailable::OutOfMemory,
            // What a driver library without its kernel module answers.
            CUresult::CUDA_ERROR_STUB_LIBRARY => Unavailable::NoDriver,
            _ => Unavailable::Failed { code: name_of(error) },
        }
    }
}

fn name_of(error: DriverError) -> String {
    match error.error_name() {
        Ok(name) => name.to_string_lossy().into_owned(),
        Err(_) => format!("{:?}", error.0),
    }
}

/// Failures after which the context answers nothing else any more.
fn is_fatal(code: CUresult) -> bool {
    matches!(
        code,
        CUresult::CUDA_ERROR_DEINITIALIZED
            | CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE
            | CUresult::CUDA_ERROR_ECC_UNCORRECTABLE
            | CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED
            | CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
            | CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUresult::CUDA_ERROR_MISALIGNED_ADDRESS
            | CUresult::CUDA_ERROR_LAUNCH_TIMEOUT
            | CUresult::CUDA_ERROR_LAUNCH_FAILED
            | CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUresult::CUDA_ERROR_UNKNOWN
    )
}
