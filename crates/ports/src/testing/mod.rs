//! Fakes that work, and the contracts that fakes and real adapters pass.
