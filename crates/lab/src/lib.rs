//! Workloads and measurement.
