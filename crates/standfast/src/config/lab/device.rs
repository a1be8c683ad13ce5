//! Memory of devices: room and codecs there.

use standfast_gpu::memory::Choice as DeviceCodec;

use super::LabKey;
use crate::config::size::ByteSize;
use crate::config::text::{Words, word, word_of};

/// Least memory for staging on a device.
const DEVICE_STAGING_MIN: u64 = 4 << 20;

const DEVICE_CODECS: Words<DeviceCodec> = &[
    ("auto", DeviceCodec::Auto),
    ("float", DeviceCodec::Float),
    ("deflate", DeviceCodec::Deflate),
    ("none", DeviceCodec::None),
];

pub(super) const DEVICE_STAGING: LabKey = LabKey {
    name: "device_staging",
    values: "SIZE",
    help: "Memory on a GPU for pages of device regions that changed, from 4MiB; what does not fit crosses while the program waits",
    default: "1GiB",
    set: |config, text| {
        let size: ByteSize = text.parse()?;
        if size.0 < DEVICE_STAGING_MIN {
            return Err(format!("{text:?} is less than 4MiB"));
        }
        config.device_staging = size;
        Ok(())
    },
    show: |config| config.device_staging.to_string(),
};

pub(super) const DEVICE_CODEC: LabKey = LabKey {
    name: "device_codec",
    values: "auto, float, deflate, none",
    help: "How pages of device regions are compressed on the GPU: auto (tried on a sample), float, deflate, none (the CPU does, with codec)",
    default: "auto",
    set: |config, text| word(&mut config.device_codec, DEVICE_CODECS, text),
    show: |config| word_of(config.device_codec, DEVICE_CODECS).into(),
};
