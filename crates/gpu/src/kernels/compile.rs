//! Sources to functions of this very device.

use std::collections::HashMap;
use std::ffi::{CStr, CString};

use cudarc::driver::{result, sys};
use cudarc::nvrtc;

use super::{Kernel, PRELUDE, Source};
use crate::error::{Error, Result, Version};

/// What is compiled so far. Lives and dies with its context.
#[derive(Default)]
pub(crate) struct Loaded {
    modules: HashMap<&'static str, sys::CUmodule>,
    functions: HashMap<&'static str, sys::CUfunction>,
}

impl Loaded {
    /// The function, compiled if need be. The context must be current.
    pub(crate) fn function(
        &mut self,
        kernel: Kernel,
        capability: Version,
    ) -> Result<sys::CUfunction> {
        if let Some(function) = self.functions.get(kernel.name) {
            return Ok(*function);
        }
        let module = self.module(kernel.source, capability)?;
        let name = CString::new(kernel.name).expect("a name without zeros");
        // SAFETY: the module stays loaded as long as the context.
        let function = unsafe { result::module::get_function(module, name) }
            .map_err(Error::of(kernel.name))?;
        if kernel.shared_bytes_max > 0 {
            let which = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            let bytes = kernel.shared_bytes_max as i32;
            // SAFETY: the function was just loaded.
            unsafe { result::function::set_function_attribute(function, which, bytes) }
                .map_err(Error::of(kernel.name))?;
        }
        self.functions.insert(kernel.name, function);
        Ok(function)
    }

    fn module(&mut self, source: &Source, capability: Version) -> Result<sys::CUmodule> {
        if let Some(module) = self.modules.get(source.name) {
            return Ok(*module);
        }
        let code = compile(source, capability)?;
        // SAFETY: machine code as the compiler wrote it.
        let module = unsafe { result::module::load_data(code.as_ptr().cast()) }
            .map_err(Error::of("loading a kernel"))?;
        self.modules.insert(source.name, module);
        Ok(module)
    }
}

fn compile(source: &Source, capability: Version) -> Result<Vec<u8>> {
    let text = format!("{PRELUDE}\n#line 1 \"{}.cu\"\n{}", source.name, source.text);
    let text = CString::new(text).expect("a source without zeros");
    let failed = |log: String| Error::Compile { name: source.name, log };
    let program =
        nvrtc::result::create_program(&text, None).map_err(|error| failed(error.to_string()))?;
    let architecture = format!("--gpu-architecture=sm_{}{}", capability.major, capability.minor);
    // SAFETY: the program was created above and is destroyed below, once.
    unsafe {
        let outcome =
            nvrtc::result::compile_program(program, &[architecture.as_str(), "-std=c++17"])
                .map_err(|error| failed(format!("{error}: {}", log_of(program))))
                .and_then(|()| machine_code(program).map_err(|error| failed(error.to_string())));
        // A program that cannot be destroyed costs memory, nothing else.
        let _ = nvrtc::result::destroy_program(program);
        outcome
    }
}

/// # Safety
/// `program` is not destroyed yet.
unsafe fn log_of(program: nvrtc::sys::nvrtcProgram) -> String {
    // SAFETY: passed on to the caller.
    let Ok(log) = (unsafe { nvrtc::result::get_program_log(program) }) else {
        return String::new();
    };
    let bytes: Vec<u8> = log.into_iter().map(|c| c as u8).collect();
    match CStr::from_bytes_until_nul(&bytes) {
        Ok(text) => text.to_string_lossy().trim().to_owned(),
        Err(_) => String::new(),
    }
}

/// # Safety
/// `program` is compiled for a real architecture and not destroyed yet.
unsafe fn machine_code(
    program: nvrtc::sys::nvrtcProgram,
) -> std::result::Result<Vec<u8>, nvrtc::result::NvrtcError> {
    let mut bytes = 0;
    // SAFETY: the caller vouches for the program; the buffer has the length that was asked for.
    unsafe {
        nvrtc::sys::nvrtcGetCUBINSize(program, &mut bytes).result()?;
        let mut code = vec![0_u8; bytes];
        nvrtc::sys::nvrtcGetCUBIN(program, code.as_mut_ptr().cast()).result()?;
        Ok(code)
    }
}
